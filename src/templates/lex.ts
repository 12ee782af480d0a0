/** Splits the inside of an action into tokens. */
import type { TemplateError } from "./template-error.ts";

type TokenKind =
  | "space"
  | "field"
  | "dot"
  | "variable"
  | "word"
  | "number"
  | "string"
  | "character"
  | "="
  | ":="
  | "|"
  | ","
  | "("
  | ")"
  | "other"
  | "end";

export interface TemplateToken {
  kind: TokenKind;
  text: string;
  /** The position in the template. */
  at: number;
}

const shapes: readonly [TokenKind, RegExp][] = [
  ["space", /[ \t\r\n]+/y],
  ["field", /\.[\p{L}\p{Nd}_]+/uy],
  [
    "number",
    /[+-]?(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:[eE][+-]?\d+)?)/uy,
  ],
  ["dot", /\./y],
  ["variable", /\$[\p{L}\p{Nd}_]*/uy],
  ["word", /[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ["string", /"(?:\\.|[^"\\\n])*"|`[^`]*`/y],
  ["character", /'(?:\\.|[^'\\\n])*'/uy],
  [":=", /:=/y],
  ["=", /=/y],
  ["|", /\|/y],
  [",", /,/y],
  ["(", /\(/y],
  [")", /\)/y],
  ["other", /[!#%&*+\-./;<>?@[\]^{}~]/y],
];

/** Splits `text` from `start` up to the end of the action, which is not part of it. */
export function lexAction(
  text: string,
  start: number,
  fail: (at: number, message: string) => TemplateError,
): {
  tokens: TemplateToken[];
  end: number;
  trimsRight: boolean;
} {
  const tokens: TemplateToken[] = [];
  let open = 0;
  for (let at = start; ; ) {
    const trims = /^[ \t\r\n]-\}\}/.test(text.slice(at, at + 4));
    if (trims || text.startsWith("}}", at)) {
      if (open > 0) throw fail(at, "unclosed left paren");
      tokens.push({ kind: "end", text: "}}", at });
      return { tokens, end: at + (trims ? 4 : 2), trimsRight: trims };
    }
    if (at >= text.length) throw fail(at, "unclosed action");
    const token = tokenAt(text, at);
    if (token === undefined) throw fail(at, unexpected(text, at));
    if (token.kind === "(") open += 1;
    if (token.kind === ")" && --open < 0) throw fail(at, "unexpected right paren");
    const problem = problemBehind(token, text[at + token.text.length] ?? "");
    if (problem !== undefined) throw fail(at, problem);
    tokens.push(token);
    at += token.text.length;
  }
}

/** Returns what is wrong if the character that follows directly on a word or a number does not end it. */
function problemBehind({ kind, text }: TemplateToken, next: string): string | undefined {
  if (!/^(field|variable|word|number)$/.test(kind) || /^[\s.,|:=()}]?$/.test(next)) return undefined;
  return kind === "number"
    ? `bad number syntax: ${JSON.stringify(text + next)}`
    : `bad character ${codePointOf(next)} '${next}'`;
}

function tokenAt(text: string, at: number): TemplateToken | undefined {
  // `.5` is a number, but `$x.5` and `.Name.5` are fields.
  const ordered =
    /\d/.test(text[at + 1] ?? "") && !/[\p{L}\p{Nd}_)$]/u.test(text[at - 1] ?? "") ? numbersFirst : shapes;
  for (const [kind, shape] of ordered) {
    shape.lastIndex = at;
    const [found] = shape.exec(text) ?? [];
    if (found !== undefined && found !== "") return { kind, text: found, at };
  }
  return undefined;
}

const numbersFirst = shapes.toSorted(
  ([one], [other]) => Number(other === "number") - Number(one === "number"),
);

function unexpected(text: string, at: number): string {
  const [character = ""] = text.slice(at);
  if (character === '"') return "unterminated quoted string";
  if (character === "`") return "unterminated raw quoted string";
  if (character === "'") return "unterminated character constant";
  if (character === ":") return "expected :=";
  return `unrecognized character in action: ${codePointOf(character)} '${character}'`;
}

/** `U+0041` */
function codePointOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
