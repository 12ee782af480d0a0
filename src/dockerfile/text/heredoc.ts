import { BoughError } from "../../errors.ts";
import type { Word } from "../words/words.ts";
import { parseStringArray } from "./json.ts";
import { type LexerOptions, lex } from "./lexer.ts";
import { splitCommand } from "./split-command.ts";

/** `<<NAME` in a line, before its body is read. */
interface HeredocMarker {
  /** The word with the `<<`. */
  written: string;
  name: string;
  /** False if any part of the delimiter is quoted. */
  expand: boolean;
  /** `<<-`: leading tabs are removed from the body and the delimiter's line. */
  stripsTabs: boolean;
}

const form = /^\d*<<(-?)([^<]*)$/;
const heredocInstructions = new Set(["RUN", "COPY", "ADD"]);

/**
 * Returns the here-documents that a logical line opens. BuildKit's rules: only in RUN, COPY and ADD (also after ONBUILD), not
 * in JSON form, and only a whole word is a marker, so that `cat<<EOF` opens none and the name in `<<EOF>file` is `EOF>file`.
 * Blanks may follow `<<`. In a RUN, `$((1 << 3))` is arithmetic and text after `#` a comment; BuildKit takes both for markers.
 */
export function heredocMarkers(line: string): HeredocMarker[] {
  const instruction = heredocInstruction(line);
  if (instruction === undefined) return [];
  const words = wordsAsWritten(line);
  const arithmetic = new ArithmeticScan();
  const markers: HeredocMarker[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (instruction === "RUN" && word.startsWith("#")) break;
    const whole = isLoneMarker(word) ? word + (words[index + 1] ?? "") : word;
    const marker = arithmetic.isOpen ? undefined : parseHeredocMarker(whole);
    if (marker !== undefined) markers.push({ ...marker, written: word });
    else if (instruction === "RUN") arithmetic.read(word);
    if (marker !== undefined && whole !== word) index++;
  }
  return markers;
}

/** Joins `<<` with the delimiter that follows it after blanks. */
export function joinLoneMarkers(words: readonly Word[]): Word[] {
  const joined: Word[] = [];
  for (const word of words) {
    const last = joined.at(-1);
    if (last !== undefined && isLoneMarker(last.text)) last.text += word.text;
    else joined.push({ ...word });
  }
  return joined;
}

/** Parses one word, or `<<` and a word, as a here-document's marker. */
export function parseHeredocMarker(word: string): HeredocMarker | undefined {
  if (!word.includes("<<")) return undefined;
  const [, dash, delimiter = ""] = form.exec(word) ?? [];
  if (delimiter === "") return undefined;
  const stripsTabs = dash === "-";
  if (/^\w+$/.test(delimiter)) return { written: word, name: delimiter, expand: true, stripsTabs };
  const [name, ...others] = splitAsShell(delimiter, {});
  if (name === undefined || others.length > 0) return undefined;
  const [asWritten = ""] = splitAsShell(delimiter, { keepsQuotes: true });
  return { written: word, name, expand: countQuotes(name) === countQuotes(asWritten), stripsTabs };
}

/** Removes the tabs at the start of each line of a body. */
export function stripTabs(content: string): string {
  return content.replace(/^\t+/gm, "");
}

function isLoneMarker(word: string): boolean {
  return /^\d*<<-?$/.test(word);
}

/** Finds words inside `$((...))` and `((...))`. Quoted parentheses do not count. */
class ArithmeticScan {
  /** The kinds of the open parentheses. */
  private readonly open: ("arithmetic" | "other")[] = [];

  get isOpen(): boolean {
    return this.open.includes("arithmetic");
  }

  read(word: string): void {
    for (const [found] of word.matchAll(/\\.|'[^']*'|"(?:\\.|[^"\\])*"|\(\(|[()]/gs)) {
      if (found === "((") this.open.push("arithmetic", "arithmetic");
      else if (found === "(") this.open.push("other");
      else if (found === ")") this.open.pop();
    }
  }
}

/** Returns the name of the line's instruction, if it may have here-documents. */
function heredocInstruction(line: string): string | undefined {
  let command = splitCommand(line);
  if (command.name.text.toUpperCase() === "ONBUILD") command = splitCommand(command.args.text);
  const name = command.name.text.toUpperCase();
  const isPossible = heredocInstructions.has(name) && parseStringArray(command.args.text).kind !== "strings";
  return isPossible ? name : undefined;
}

function wordsAsWritten(line: string): string[] {
  return splitAsShell(line, { keepsQuotes: true, keepsEscapes: true });
}

/** Returns no words if the lexer can't read the text: for BuildKit, an unpaired apostrophe means no here-document. */
function splitAsShell(text: string, keeps: Pick<LexerOptions, "keepsQuotes" | "keepsEscapes">): string[] {
  try {
    return lex(text, () => undefined, { escape: "\\", keepsUnsetNames: true, ...keeps }).words;
  } catch (error) {
    if (error instanceof BoughError) return [];
    throw error;
  }
}

function countQuotes(text: string): number {
  return text.replace(/[^'"]/g, "").length;
}
