import { referencesIn } from "../dockerfile/references.ts";
import type { PlannedStage } from "./plan-state.ts";

/** Whether a word comes to the same whatever the base image sets: that is not looked into. */
export type IsKnown = (word: string) => boolean;

export function knowledgeOf({ env, args, unknown }: PlannedStage, escape: "\\" | "`"): IsKnown {
  return (word) =>
    referencesIn(word, escape).every(({ name, isRequired }) => {
      if (unknown.has(name)) return false;
      // What says itself what stands for a missing value is taken at its word.
      return !isRequired || env.has(name) || args.has(name) || name === "PATH";
    });
}

/** The names whose values are not known, after some have got new ones. */
export function updateUnknown(
  unknown: ReadonlySet<string>,
  values: readonly { key: string; value: string | undefined }[],
  isKnown: IsKnown,
): ReadonlySet<string> {
  const updated = new Set(unknown);
  for (const { key, value } of values) {
    if (value === undefined || isKnown(value)) updated.delete(key);
    else updated.add(key);
  }
  return updated;
}
