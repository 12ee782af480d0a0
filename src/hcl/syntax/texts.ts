/** The literal parts of texts: escapes, and where a part ends. */
import { HclError } from "../hcl-error.ts";
import type { Range, Source } from "../source.ts";

/** What ends a text: a quote, a line with only the marker, or the end of the source. */
export type TextEnding =
  | { kind: "quote" }
  | { kind: "marker"; marker: string; isFlush: boolean }
  | { kind: "end" };

/** A literal part, without escapes. A part of several lines is divided after each line, and before and after a `$` or `%`. */
interface Literal {
  text: string;
  range: Range;
}

const quotedRun = /(?:[^"\\$%\r\n]|\\[^\r\n])+/y;
const lineRun = /[^$%\r\n]*(?:\r?\n|\r(?!\n))?/y;
const doubled = /\$\$\{|%%\{/y;

/** Returns the literal part at an offset. The caller has made sure that there is one. */
export function literalAt(source: Source, at: number, ending: TextEnding): Literal {
  const { text } = source;
  doubled.lastIndex = at;
  // `$${` is a literal `${`. A dollar sign before anything else is one.
  if (doubled.test(text))
    return { text: text.slice(at + 1, at + 3), range: { source, start: at, end: at + 3 } };
  if (text[at] === "$" || text[at] === "%")
    return { text: text[at] ?? "", range: { source, start: at, end: at + 1 } };
  const run = ending.kind === "quote" ? quotedRun : lineRun;
  run.lastIndex = at;
  const found = run.exec(text)?.[0] ?? "";
  const range = { source, start: at, end: at + found.length };
  if (found === "") throw unreadable(source, at);
  return { text: ending.kind === "quote" ? unescape(found, range) : found, range };
}

function unreadable(source: Source, at: number): HclError {
  const range = { source, start: at, end: Math.min(at + 1, source.text.length) };
  if (at >= source.text.length) return new HclError("the text has no end", range);
  if (/[\r\n]/.test(source.text[at] ?? ""))
    return new HclError(
      "a text in quotes must end in its line",
      range,
      "Several lines are a here-document: <<EOT.",
    );
  return new HclError("a backslash must be followed by what it escapes", range);
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };

function unescape(text: string, range: Range): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))/gu,
    (
      whole,
      short: string | undefined,
      long: string | undefined,
      letter: string | undefined,
      offset: number,
    ) => {
      const at = { ...range, start: range.start + offset, end: range.start + offset + whole.length };
      const code = Number.parseInt(short ?? long ?? "", 16);
      if (letter === undefined) {
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
          throw new HclError(`invalid escape sequence: there is no character U+${code.toString(16)}`, at);
        return String.fromCodePoint(code);
      }
      const character = escapes[letter];
      if (character !== undefined) return character;
      throw new HclError(
        `invalid escape sequence ${whole}`,
        at,
        letter === "u" || letter === "U"
          ? "\\u is followed by four hexadecimal digits, and \\U by eight."
          : 'There are \\n, \\r, \\t, \\", \\\\, \\uNNNN and \\UNNNNNNNN; a backslash itself is \\\\.',
      );
    },
  );
}

/** Returns the end of a here-document's last line if that starts at an offset: behind the marker, before the line break. */
export function markerEnd({ text }: Source, at: number, marker: string): number | undefined {
  const end = text.indexOf("\n", at);
  if (end < 0) return undefined;
  const line = text.slice(at, end);
  if (line.trim() !== marker) return undefined;
  return line.endsWith("\r") ? end - 1 : end;
}

const space = "[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const leadingSpace = new RegExp(`^${space}+`);

export function trimSpaceStart(text: string): string {
  return text.replace(leadingSpace, "");
}

export function trimSpaceEnd(text: string): string {
  // A regular expression for the end alone would try each place in a long run of spaces.
  let end = text.length;
  while (end > 0 && leadingSpace.test(text[end - 1] ?? "")) end -= 1;
  return text.slice(0, end);
}
