/**
 * Words of keys and of short values. `exit_code`, `exitCode`, `ExitCode`, `exit-code` and `exitcode` are the words `exit code`:
 * what a key means follows from its words, so there is no table of keys.
 */
import { vocabulary } from "./vocabulary.ts";

const known = new Map<string, readonly string[]>();
/** Keys of responses are not remembered without end. */
const maxKnown = 1000;

/** A key or a value that says something is short; a message or output may have megabytes. */
const maxCharacters = 1000;

/** Returns the words of a key or a value, in lower case; of a long one those of its beginning. */
export function wordsOf(whole: string): readonly string[] {
  const text = whole.slice(0, maxCharacters);
  let words = known.get(text);
  if (words === undefined) {
    words = split(text);
    if (known.size < maxKnown) known.set(text, words);
  }
  return words;
}

export function hasAny(words: readonly string[], set: ReadonlySet<string>): boolean {
  return words.some((word) => set.has(word));
}

export function hasOnly(words: readonly string[], set: ReadonlySet<string>): boolean {
  return words.length > 0 && words.every((word) => set.has(word));
}

function split(text: string): readonly string[] {
  return text
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .replaceAll(/\bstd[ _-](in|out|err)\b/g, "std$1")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .flatMap(partsOf);
}

/** Divides what is written as one word: `exitcode`, `finishedat`. */
function partsOf(word: string): readonly string[] {
  if (vocabulary.has(word) || word.length > maxCompound) return [word];
  for (let at = word.length - 2; at >= 2; at--) {
    const [first, rest] = [word.slice(0, at), word.slice(at)];
    if (!vocabulary.has(first)) continue;
    if (vocabulary.has(rest)) return [first, rest];
    const parts = partsOf(rest);
    if (parts.length > 1) return [first, ...parts];
  }
  return [word];
}

const maxCompound = 24;
