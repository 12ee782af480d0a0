import { BoughError } from "../../errors.ts";
import { parseStringArray } from "./json.ts";
import { type LexerOptions, lex } from "./lexer.ts";
import { splitCommand } from "./split-command.ts";

/** `<<NAME` in a line, before its body is read. */
interface HeredocMarker {
  /** The whole word. */
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
 */
export function heredocMarkers(line: string): HeredocMarker[] {
  if (!canHoldHeredocs(line)) return [];
  return wordsAsWritten(line).flatMap((word) => parseHeredocMarker(word) ?? []);
}

/** Parses one word as a here-document's marker. */
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

function canHoldHeredocs(line: string): boolean {
  let command = splitCommand(line);
  if (command.name.text.toUpperCase() === "ONBUILD") command = splitCommand(command.args.text);
  return (
    heredocInstructions.has(command.name.text.toUpperCase()) &&
    parseStringArray(command.args.text).kind !== "strings"
  );
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
