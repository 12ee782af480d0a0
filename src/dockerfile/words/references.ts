import { BoughError } from "../../errors.ts";
import type { Instruction, Mount } from "../instruction.ts";
import { argumentWords } from "../instruction-words.ts";
import { expandHeredoc, expandWord, type Lookup } from "./words.ts";

/** A variable that a text uses. */
export interface VariableReference {
  name: string;
  /** False if every use handles a missing value itself: `${NAME:-x}`, `${NAME+x}`, `${NAME:?why}`. */
  isRequired: boolean;
}

/** Returns the variables that a word uses, each once; for an invalid word, those before the error. */
export function referencesIn(word: string, escapeCharacter: string): VariableReference[] {
  return find(word, (text, lookup) => expandWord(text, lookup, escapeCharacter));
}

/** Returns the variables that an instruction's words, flags and here-documents use. For a RUN the shell replaces them. */
export function referencesOf(instruction: Instruction, escapeCharacter: string): VariableReference[] {
  if (!instruction.original.includes("$") && instruction.heredocs.length === 0) return [];
  const flags = instruction.flags.flatMap(({ value }) => value ?? []);
  const words = wordsWithReferences(instruction, escapeCharacter);
  const found = [...words, ...flags].flatMap((word) => referencesIn(word, escapeCharacter));
  for (const { content, expand } of instruction.heredocs) {
    if (expand) found.push(...find(content, (text, lookup) => expandHeredoc(text, lookup, escapeCharacter)));
  }
  const names = new Map<string, VariableReference>();
  for (const { name, isRequired } of found)
    names.set(name, { name, isRequired: isRequired || names.get(name)?.isRequired === true });
  return [...names.values()];
}

function wordsWithReferences(instruction: Instruction, escapeCharacter: string): readonly string[] {
  // In the legacy form `ENV KEY VALUE` the value is one word, whatever quotes are in it.
  return instruction.name === "ENV"
    ? instruction.pairs.flatMap(({ key, value }) => [key, value])
    : argumentWords(instruction, escapeCharacter);
}

/** Collects the names that the lexer looks up, since only the lexer knows how quotes and escapes affect a `$`. */
function find(text: string, expand: (text: string, lookup: Lookup) => string): VariableReference[] {
  if (!text.includes("$")) return [];
  const names = new Set<string>();
  const lookup: Lookup = (name) => {
    names.add(name);
    return undefined;
  };
  try {
    // No name has a value here, and `:?` must not end the search with an error.
    expand(text.replace(orElseFail, "$1:-"), lookup);
  } catch (error) {
    // The word's error is reported when it is expanded.
    if (!(error instanceof BoughError)) throw error;
  }
  const usedPlainly = new Set(Array.from(text.matchAll(plainUse), ([, bare, braced]) => bare ?? braced));
  return [...names]
    .filter((name) => /^[\p{L}_]/u.test(name))
    .map((name) => ({ name, isRequired: usedPlainly.has(name) }));
}

/** `${NAME:?` and `${NAME?` */
const orElseFail = /(\$\{[\p{L}\p{Nd}_]+):?\?/gu;
/** `$NAME`, `${NAME}` and `${NAME#...}`, but not `${NAME:-...}`. */
const plainUse = /\$(?:([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)(?!:?[-+?]|[\p{L}\p{Nd}_]))/gu;

/** Returns the words of a mount that may contain variables. */
export function wordsOfMount({ from: _, ...mount }: Mount): string[] {
  return Object.values(mount).filter((value) => typeof value === "string");
}
