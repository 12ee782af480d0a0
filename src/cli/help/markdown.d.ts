/** The text of a topic, compiled into the program. */
declare module "*.md" {
  const text: string;
  export default text;
}
