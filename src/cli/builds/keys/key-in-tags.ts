import type { OutputEntry } from "../../entries/output.ts";
import type { Runtime } from "../../process/runtime.ts";
import type { BuildInvocation } from "../request.ts";

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

type Keyed = Pick<BuildInvocation, "options"> & { runtime: Pick<Runtime, "isPlugin"> };

/** True if a tag, or the name of an output, has a place for the key. In the place of docker's builder none has: there it is no tag. */
export function usesKey({ options: { tag = [], output = [] }, runtime }: Keyed): boolean {
  if (runtime.isPlugin === true) return false;
  return tag.some(hasKeyMark) || output.some(({ text }) => hasKeyMark(text));
}

/** Returns the request with a key where tags and outputs have a place for it. */
export function withKey<Given extends Keyed>(given: Given, key: string): Given {
  if (!usesKey(given)) return given;
  const { options } = given;
  return {
    ...given,
    options: {
      ...options,
      tag: options.tag?.map((text) => replaceKeyMark(text, key)),
      output: options.output?.map((output) => outputWithKey(output, key)),
    },
  };
}

function outputWithKey(output: OutputEntry, key: string): OutputEntry {
  const replaced = (text: string) => replaceKeyMark(text, key);
  return {
    ...output,
    text: replaced(output.text),
    dest: output.dest && replaced(output.dest),
    names: output.names?.map(replaced),
    givenAnnotations: output.givenAnnotations.map(replaced),
  };
}
