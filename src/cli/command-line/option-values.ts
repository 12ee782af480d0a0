/** Values of options that take a number or one of several words. Sizes and times have files of their own. */
import { BoughError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";

/** Parses the value of an option that takes a positive whole number. */
export function positiveInteger(text: string | undefined, option: string, hint?: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new BoughError(`${option} takes a positive whole number, not ${JSON.stringify(text)}`, {
    kind: "usage",
    hint,
  });
}

/** Joins words as in `a, b or c`. */
export function listWords(words: readonly string[]): string {
  return words.join(", ").replace(/, ([^,]*)$/, " or $1");
}

/** Returns the choice that `text` names. Throws if there is none: the hint is the nearest choice, or `otherwise`. */
export function oneOf<const Choice extends string>(
  text: string,
  choices: readonly Choice[],
  option: string,
  otherwise?: string,
): Choice {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  const guess = nearest(text, choices);
  const hint = guess === undefined ? otherwise : `Did you mean ${guess}?`;
  throw new BoughError(`${option} takes ${listWords(choices)}, not ${JSON.stringify(text)}`, {
    kind: "usage",
    hint,
  });
}
