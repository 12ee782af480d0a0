import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { referencesIn } from "../../dockerfile/words/references.ts";
import { extend } from "../../persistent-map.ts";
import type { StageScope } from "./scope.ts";

/** Returns whether a word comes to the same whatever the base image sets: that is not looked into. */
export type IsKnown = (word: string) => boolean;

export function createIsKnown(
  { env, args, inherited, unknown }: StageScope,
  escape: EscapeCharacter,
): IsKnown {
  return (word) =>
    referencesIn(word, escape).every(({ name, isRequired }) => {
      // The image has been asked, or is no part of this.
      if (inherited !== undefined) return true;
      if (unknown.get(name) === true) return false;
      // What says itself what stands for a missing value is taken at its word.
      return !isRequired || env.has(name) || args.has(name) || name === "PATH";
    });
}

/** The names whose values are not known, after some have got new ones. */
export function updateUnknown(
  unknown: ReadonlyMap<string, boolean>,
  values: readonly { key: string; value: string | undefined }[],
  isKnown: IsKnown,
): ReadonlyMap<string, boolean> {
  const changed = new Map<string, boolean>();
  for (const { key, value } of values) {
    const isLost = value !== undefined && !isKnown(value);
    if (isLost || unknown.get(key) === true) changed.set(key, isLost || changed.get(key) === true);
  }
  return changed.size === 0 ? unknown : extend(unknown, changed);
}
