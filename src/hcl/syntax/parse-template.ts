/** Texts: literal parts, `${...}`, and `%{if}` and `%{for}` around other parts. */
import type { Range } from "../source.ts";
import { stringValue } from "../values/value.ts";
import type { Reader } from "./reader.ts";
import { literalAt, markerEnd, type TextEnding, trimSpaceEnd, trimSpaceStart } from "./texts.ts";
import type { Expression } from "./tree.ts";

export type ParseExpression = (reader: Reader) => Expression;

interface TextPart {
  kind: "text";
  text: string;
  range: Range;
}

type OpeningPart = { range: Range } & (
  | { kind: "if"; condition: Expression }
  | { kind: "for"; keyName: string | undefined; valueName: string; from: Expression }
);

interface ClosingPart {
  kind: "else" | "endif" | "endfor";
  range: Range;
}

type Part = TextPart | { kind: "value"; expression: Expression; range: Range } | OpeningPart | ClosingPart;

/** Parses a text up to its ending. `start`: the offset of its quote or marker. */
export function parseTemplateExpression(
  reader: Reader,
  ending: TextEnding,
  start: number,
  parseExpression: ParseExpression,
): Expression {
  const parts = readParts(reader, ending, parseExpression);
  if (ending.kind === "marker" && ending.isFlush) removeIndentation(parts);
  const range = reader.since(start);
  const joined = joinTexts(parts);
  const [only] = joined;
  if (joined.length === 1 && only?.kind === "value")
    return { kind: "group", inner: only.expression, isTemplate: true, range };
  const left = [...joined];
  const expressions = takeExpressions(left, reader);
  const [rest] = left;
  if (rest !== undefined) reader.fail(`unexpected ${rest.kind}: no directive before it is open`, rest.range);
  return { kind: "template", parts: expressions, range };
}

function readParts(reader: Reader, ending: TextEnding, parseExpression: ParseExpression): Part[] {
  const { source } = reader;
  const parts: Part[] = [];
  let isLineStart = true;
  let trimsNext = false;
  for (;;) {
    const { at } = reader;
    const end = endingAt(reader, ending, isLineStart);
    if (end !== undefined) {
      reader.continueAt(end);
      return parts;
    }
    const opening = /^[$%]\{~?/.exec(source.text.slice(at, at + 3))?.[0];
    if (opening === undefined) {
      const { text, range } = literalAt(source, at, ending);
      reader.continueAt(range.end);
      parts.push({ kind: "text", text: trimsNext ? trimSpaceStart(text) : text, range });
      trimsNext = false;
      isLineStart = source.text[range.end - 1] === "\n";
      continue;
    }
    const before = parts.at(-1);
    if (opening.endsWith("~") && before?.kind === "text") before.text = trimSpaceEnd(before.text);
    reader.continueAt(at + opening.length);
    const part = reader.within("skipped", () =>
      opening.startsWith("$")
        ? { kind: "value" as const, expression: parseExpression(reader), range: reader.since(at) }
        : readDirective(reader, at, parseExpression),
    );
    const close = reader.within("skipped", () => {
      const found = reader.take("}") ?? reader.take("~}");
      if (found === undefined)
        reader.fail(`a closing brace is required for ${opening}`, undefined, literalHint(opening));
      return found;
    });
    trimsNext = close.text === "~}";
    parts.push({ ...part, range: reader.since(at) });
    isLineStart = false;
  }
}

function literalHint(opening: string): string {
  return `A literal ${opening.slice(0, 2)} is written ${opening[0]}${opening.slice(0, 2)}.`;
}

/** Returns the offset behind the ending, if it is here. */
function endingAt({ source, at }: Reader, ending: TextEnding, isLineStart: boolean): number | undefined {
  switch (ending.kind) {
    case "quote":
      return source.text[at] === '"' ? at + 1 : undefined;
    case "marker":
      return isLineStart ? markerEnd(source, at, ending.marker) : undefined;
    case "end":
      return at >= source.text.length ? at : undefined;
  }
}

function readDirective(reader: Reader, start: number, parseExpression: ParseExpression): Part {
  const word = reader.read();
  switch (word.kind === "name" ? word.text : "") {
    case "if":
      return { kind: "if", condition: parseExpression(reader), range: reader.since(start) };
    case "for": {
      const names = readForNames(reader);
      return { kind: "for", ...names, from: parseExpression(reader), range: reader.since(start) };
    }
    case "else":
    case "endif":
    case "endfor":
      return { kind: word.text as ClosingPart["kind"], range: reader.since(start) };
    default:
      return reader.fail(
        `unknown directive ${JSON.stringify(word.text)}`,
        word.range,
        "There are if, else, endif, for and endfor; a literal %{ is written %%{.",
      );
  }
}

/** Reads the names of `for key, value in`, up to the `in`. */
export function readForNames(reader: Reader): { keyName: string | undefined; valueName: string } {
  const name = () => {
    const token = reader.read();
    if (token.kind !== "name")
      reader.fail("a name is required after for, as in: for item in items", token.range);
    return token.text;
  };
  const first = name();
  const second = reader.take(",") === undefined ? undefined : name();
  if (!reader.isAtName("in")) reader.fail('"in" is required after the name, as in: for item in items');
  reader.read();
  return { keyName: second === undefined ? undefined : first, valueName: second ?? first };
}

/** Removes from all lines of a `<<-` text the indentation that all have. Empty lines do not count. */
function removeIndentation(parts: Part[]): void {
  let isLineStart = true;
  let smallest = Number.POSITIVE_INFINITY;
  const lines: TextPart[] = [];
  for (const part of parts) {
    if (isLineStart) {
      const trimmed = part.kind === "text" ? trimSpaceStart(part.text) : "";
      const isEmpty = part.kind === "text" && trimmed === "" && part.text.endsWith("\n");
      if (!isEmpty) {
        smallest = Math.min(smallest, part.kind === "text" ? part.text.length - trimmed.length : 0);
        if (part.kind === "text") lines.push(part);
      }
    }
    isLineStart = part.kind === "text" && part.text.endsWith("\n");
  }
  for (const line of lines) line.text = line.text.slice(smallest);
}

function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.kind === "text" && last?.kind === "text")
      joined[joined.length - 1] = {
        kind: "text",
        text: last.text + part.text,
        range: { ...last.range, end: part.range.end },
      };
    else joined.push(part);
  }
  return joined;
}

/** Takes parts up to one that ends a directive, which stays. */
function takeExpressions(parts: Part[], reader: Reader): Expression[] {
  const expressions: Expression[] = [];
  for (let part = parts[0]; part !== undefined; part = parts[0]) {
    if (part.kind === "else" || part.kind === "endif" || part.kind === "endfor") break;
    parts.shift();
    const opening = part.kind === "if" || part.kind === "for" ? part : undefined;
    if (part.kind === "text") expressions.push(literal(part.text, part.range));
    else if (part.kind === "value") expressions.push(part.expression);
    if (opening !== undefined) expressions.push(reader.nested(() => takeDirective(opening, parts, reader)));
  }
  return expressions;
}

function takeDirective(part: OpeningPart, parts: Part[], reader: Reader): Expression {
  const { range } = part;
  const whole = (): Expression => ({ kind: "template", parts: takeExpressions(parts, reader), range });
  const takeEnd = (kind: Part["kind"]) => {
    const end = parts.shift();
    if (end?.kind !== kind) reader.fail(`${kind} is missing for this ${part.kind}`, end?.range ?? range);
    return { ...range, end: end.range.end };
  };
  if (part.kind === "for") {
    const value = whole();
    const end = takeEnd("endfor");
    const { keyName, valueName, from } = part;
    const loop = { kind: "for" as const, keyName, valueName, from, value };
    return {
      kind: "joined",
      each: { ...loop, key: undefined, condition: undefined, isGrouping: false, range: end },
      range: end,
    };
  }
  const whenTrue = whole();
  let whenFalse: Expression = literal("", range);
  if (parts[0]?.kind === "else") {
    parts.shift();
    whenFalse = whole();
  }
  return { kind: "conditional", condition: part.condition, whenTrue, whenFalse, range: takeEnd("endif") };
}

function literal(text: string, range: Range): Expression {
  return { kind: "literal", value: stringValue(text), range };
}
