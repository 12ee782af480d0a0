import { referencesIn } from "../dockerfile/words/references.ts";
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
  const lost = values.filter(({ value }) => value !== undefined && !isKnown(value)).map(({ key }) => key);
  if (lost.length === 0 && !values.some(({ key }) => unknown.has(key))) return unknown;
  const replaced = new Set(values.map(({ key }) => key));
  return new Set([...unknown].filter((name) => !replaced.has(name)).concat(lost));
}
