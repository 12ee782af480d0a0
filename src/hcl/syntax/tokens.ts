/** The tokens of a file outside of texts: https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md. */
import { HclError } from "../hcl-error.ts";
import type { Range, Source } from "../source.ts";

export interface HclToken {
  kind: "name" | "number" | "mark" | "quote" | "here-document" | "newline" | "end";
  text: string;
  range: Range;
}

const spaces = /[ \t]*/y;
const lineBreak = /\r?\n/y;
/** A comment to the end of the line includes the line break, and counts as one. */
const comment = /(?:#|\/\/)[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\//y;
const patterns: readonly (readonly [HclToken["kind"], RegExp])[] = [
  ["newline", lineBreak],
  ["name", /[\p{ID_Start}_][\p{ID_Continue}-]*/uy],
  ["number", /\d(?:(?:[\d.]|[eE][+-]?\d)*(?:\d|[eE][+-]?\d))?/y],
  ["quote", /"/y],
  ["here-document", /<<-?[\p{ID_Start}_][\p{ID_Continue}-]*\r?\n/uy],
  ["mark", /\.\.\.|::|=>|==|!=|<=|>=|&&|\|\||~\}|[{}[\]().,*/%+\-=<>!?:]/y],
  ["end", /$/y],
];

/** Characters that other languages use, with hints about HCL's own. */
const foreign: Readonly<Record<string, string>> = {
  "'": 'Texts are in double quotes (").',
  "`": 'Texts are in double quotes ("), longer ones in here-documents (<<EOT).',
  "“": 'Texts are in straight quotes (").',
  "”": 'Texts are in straight quotes (").',
  ";": "A line break ends an argument, and a comma an element.",
  "&": "And is &&.",
  "|": "Or is ||.",
  "~": "Not is !.",
};

/** Returns the token at an offset, after spaces and comments and, if they do not matter, line breaks. */
export function scanToken(source: Source, offset: number, skipsLines: boolean): HclToken {
  const { text } = source;
  let at = offset;
  for (let isMore = true; isMore; ) {
    at += matchAt(spaces, text, at).length;
    const skipped = matchAt(comment, text, at);
    if (skipped.endsWith("\n") && !skipsLines)
      return { kind: "newline", text: "\n", range: { source, start: at, end: at + skipped.length } };
    const line = skipsLines ? matchAt(lineBreak, text, at + skipped.length) : "";
    at += skipped.length + line.length;
    isMore = skipped.length + line.length > 0;
  }
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined)
      return { kind, text: found, range: { source, start: at, end: at + found.length } };
  }
  return fail(source, at);
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

function fail(source: Source, at: number): never {
  const character = String.fromCodePoint(source.text.codePointAt(at) ?? 0);
  throw new HclError(
    `invalid character ${JSON.stringify(character)}`,
    { source, start: at, end: at + character.length },
    foreign[character],
  );
}
