import type { Values } from "../../command-line/arguments.ts";
import type { Runtime } from "../../process/runtime.ts";

/** Stands for a target's content key in a tag: `-t registry.example/env:{key}`. */
const mark = "{key}";

/** Stands for a key that is not known yet, where only the form of a tag counts. */
export const placeholderKey = "0".repeat(64);

/** True for a text that has a place for the key. */
export function hasKeyMark(text: string): boolean {
  return text.includes(mark);
}

export function replaceKeyMark(text: string, key: string): string {
  return text.replaceAll(mark, key);
}

/** True if a tag, or the name of an output, has a place for the key. In the place of docker's builder none has: there it is no tag. */
export function usesKey(values: Pick<Values, "list">, { isPlugin }: Pick<Runtime, "isPlugin">): boolean {
  return isPlugin !== true && keyed.some((name) => values.list(name).some(hasKeyMark));
}

const keyed = ["tag", "output"] as const;

type Door = Pick<Runtime, "isPlugin">;

/** Returns the options with a key where tags and outputs have a place for it. */
export function withKey(values: Values, key: string, door: Door): Values {
  if (!usesKey(values, door)) return values;
  const isKeyed = (name: string) => keyed.some((each) => each === name);
  const list = (name: string) =>
    isKeyed(name) ? values.list(name).map((text) => replaceKeyMark(text, key)) : values.list(name);
  return { ...values, list, text: (name) => (isKeyed(name) ? list(name).at(-1) : values.text(name)) };
}
