import { BoughError } from "../errors.ts";
import type { Instruction } from "./instruction.ts";
import { expandHeredoc, expandWord } from "./words.ts";

/** A variable that a text asks for. */
export interface VariableReference {
  name: string;
  /** False where every use says itself what stands for a missing value: `${NAME:-x}`, `${NAME+x}`, `${NAME:?why}`. */
  isRequired: boolean;
}

/** The variables that a word asks for, each once, in the order in which they appear. None for a word that is not valid. */
export function referencesIn(word: string, escapeCharacter: string): VariableReference[] {
  return find(word, (lookup) => expandWord(word, lookup, escapeCharacter));
}

/** The variables that an instruction's words, flags and here-documents ask for; those of a RUN are the shell's. */
export function referencesOf(instruction: Instruction, escapeCharacter: string): VariableReference[] {
  if (!instruction.original.includes("$") && instruction.heredocs.length === 0) return [];
  const flags = instruction.flags.flatMap(({ value }) => value ?? []);
  const found = [...wordsOf(instruction), ...flags].flatMap((word) => referencesIn(word, escapeCharacter));
  for (const { content, expand } of instruction.heredocs) {
    if (expand) found.push(...find(content, (lookup) => expandHeredoc(content, lookup, escapeCharacter)));
  }
  const names = new Map<string, VariableReference>();
  for (const { name, isRequired } of found)
    names.set(name, { name, isRequired: isRequired || names.get(name)?.isRequired === true });
  return [...names.values()];
}

function wordsOf(instruction: Instruction): readonly string[] {
  // The old form `ENV KEY VALUE` is one value, whatever quotes are in it.
  return instruction.name === "ENV"
    ? instruction.pairs.flatMap(({ key, value }) => [key, value])
    : instruction.words;
}

function find(text: string, expand: (lookup: (name: string) => undefined) => string): VariableReference[] {
  if (!text.includes("$")) return [];
  const names = new Set<string>();
  try {
    expand((name) => void names.add(name));
  } catch (error) {
    // `${NAME:?why}` fails here, since nothing has a value; what is really wrong is said where the word is expanded.
    if (!(error instanceof BoughError)) throw error;
  }
  return [...names]
    .filter((name) => /^[\p{L}_]/u.test(name))
    .map((name) => ({ name, isRequired: isUsedAsIs(name, text) }));
}

function isUsedAsIs(name: string, text: string): boolean {
  return new RegExp(`\\$(?:${name}(?![\\p{L}\\p{Nd}_])|\\{${name}(?!:?[-+?]|[\\p{L}\\p{Nd}_]))`, "u").test(
    text,
  );
}
