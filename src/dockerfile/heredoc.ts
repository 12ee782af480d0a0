import { messageOf } from "../errors.ts";
import { parseStringArray } from "./json.ts";
import { lex } from "./lexer.ts";
import { splitCommand } from "./split-command.ts";

/** `<<NAME` as it stands in a line, before its body is read. */
export interface HeredocMarker {
  name: string;
  /** False where any part of the delimiter is quoted. */
  expand: boolean;
  /** `<<-`: leading tabs are removed from the body and the delimiter's line. */
  stripsTabs: boolean;
}

const form = /^\d*<<(-?)([^<]*)$/;
const holders = new Set(["RUN", "COPY", "ADD"]);
const nothingIsSet = () => undefined;

/**
 * The here-documents that a logical line opens. BuildKit's rules: only RUN, COPY and ADD (also behind ONBUILD), not in
 * JSON form, and each marker a word of its own, so that `cat<<EOF` opens none and the name in `<<EOF>file` is `EOF>file`.
 */
export function heredocMarkers(line: string): { markers: HeredocMarker[]; error?: string } {
  if (!line.includes("<<") || !canHoldHeredocs(line)) return { markers: [] };
  const markers: HeredocMarker[] = [];
  try {
    for (const word of wordsAsWritten(line)) {
      const marker = parseHeredocMarker(word);
      if (marker !== undefined) markers.push(marker);
    }
  } catch (error) {
    return { markers: [], error: messageOf(error) };
  }
  return { markers };
}

/** Reads one word as a here-document's marker. Throws a BoughError where its quotes do not close. */
export function parseHeredocMarker(word: string): HeredocMarker | undefined {
  const [, dash, delimiter = ""] = form.exec(word) ?? [];
  if (delimiter === "") return undefined;
  const stripsTabs = dash === "-";
  if (/^\w+$/.test(delimiter)) return { name: delimiter, expand: true, stripsTabs };
  const options = { escape: "\\", keepsUnsetNames: true };
  const names = lex(delimiter, nothingIsSet, options).words;
  const [name] = names;
  if (name === undefined || names.length !== 1) return undefined;
  const [asWritten = ""] = lex(delimiter, nothingIsSet, { ...options, keepsQuotes: true }).words;
  return { name, expand: countQuotes(name) === countQuotes(asWritten), stripsTabs };
}

/** The body without the tabs that start its lines. */
export function stripTabs(content: string): string {
  return content.replace(/^\t+/gm, "");
}

function canHoldHeredocs(line: string): boolean {
  let command = splitCommand(line);
  if (command.name.text.toUpperCase() === "ONBUILD") command = splitCommand(command.args.text);
  return (
    holders.has(command.name.text.toUpperCase()) && parseStringArray(command.args.text).kind !== "strings"
  );
}

function wordsAsWritten(line: string): string[] {
  try {
    return lex(line, nothingIsSet, {
      escape: "\\",
      keepsQuotes: true,
      keepsEscapes: true,
      keepsUnsetNames: true,
    }).words;
  } catch {
    // A line that BuildKit's lexer can't read, such as one with an odd apostrophe, opens no here-document there either.
    return [];
  }
}

function countQuotes(text: string): number {
  return text.replace(/[^'"]/g, "").length;
}
