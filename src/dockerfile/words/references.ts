import { BoughError } from "../../errors.ts";
import type { Instruction } from "../instruction.ts";
import { argumentWords } from "../instruction-words.ts";
import { expandHeredoc, expandWord, type Lookup } from "./words.ts";

/** A variable that a text asks for. */
interface VariableReference {
  name: string;
  /** False where every use says itself what stands for a missing value: `${NAME:-x}`, `${NAME+x}`, `${NAME:?why}`. */
  isRequired: boolean;
}

/** The variables that a word asks for, each once; of a word that is not valid, those in front of the fault. */
export function referencesIn(word: string, escapeCharacter: string): VariableReference[] {
  return find(word, (text, lookup) => expandWord(text, lookup, escapeCharacter));
}

/** The variables that an instruction's words, flags and here-documents ask for; those of a RUN are the shell's. */
export function referencesOf(instruction: Instruction, escapeCharacter: string): VariableReference[] {
  if (!instruction.original.includes("$") && instruction.heredocs.length === 0) return [];
  const flags = instruction.flags.flatMap(({ value }) => value ?? []);
  const words = askingWords(instruction, escapeCharacter);
  const found = [...words, ...flags].flatMap((word) => referencesIn(word, escapeCharacter));
  for (const { content, expand } of instruction.heredocs) {
    if (expand) found.push(...find(content, (text, lookup) => expandHeredoc(text, lookup, escapeCharacter)));
  }
  const names = new Map<string, VariableReference>();
  for (const { name, isRequired } of found)
    names.set(name, { name, isRequired: isRequired || names.get(name)?.isRequired === true });
  return [...names.values()];
}

function askingWords(instruction: Instruction, escapeCharacter: string): readonly string[] {
  // The old form `ENV KEY VALUE` is one value, whatever quotes are in it.
  return instruction.name === "ENV"
    ? instruction.pairs.flatMap(({ key, value }) => [key, value])
    : argumentWords(instruction, escapeCharacter);
}

/** Lets the lexer ask for every name: it alone knows what quotes and escapes make of a `$`. */
function find(text: string, expand: (text: string, lookup: Lookup) => string): VariableReference[] {
  if (!text.includes("$")) return [];
  const names = new Set<string>();
  const lookup: Lookup = (name) => {
    names.add(name);
    return undefined;
  };
  try {
    // Nothing has a value here, and no message is to end the search.
    expand(text.replace(orElseFail, "$1:-"), lookup);
  } catch (error) {
    // What is wrong with the word is said where it is expanded.
    if (!(error instanceof BoughError)) throw error;
  }
  const usedAsIs = new Set(Array.from(text.matchAll(useAsIs), ([, bare, braced]) => bare ?? braced));
  return [...names]
    .filter((name) => /^[\p{L}_]/u.test(name))
    .map((name) => ({ name, isRequired: usedAsIs.has(name) }));
}

/** `${NAME:?` and `${NAME?` */
const orElseFail = /(\$\{[\p{L}\p{Nd}_]+):?\?/gu;
/** `$NAME`, `${NAME}` and `${NAME#...}`, but not `${NAME:-...}`. */
const useAsIs = /\$(?:([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)(?!:?[-+?]|[\p{L}\p{Nd}_]))/gu;
