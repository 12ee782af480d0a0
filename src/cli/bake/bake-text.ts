/** A file of a bake, with its name for messages. */
export interface BakeText {
  file: string;
  text: string;
}
