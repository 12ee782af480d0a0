/** Files in JSON: https://github.com/hashicorp/hcl/blob/main/json/spec.md. Texts in them are templates. */
import { HclError } from "../hcl-error.ts";
import { positionOf, type Range, type Source } from "../source.ts";
import { parseNumber } from "../values/big-float-text.ts";
import { boolValue, nullValue, numberValue } from "../values/value.ts";
import { parseTemplateText } from "./parse-expression.ts";
import type { Attribute, Expression, HclBlock, HclBody } from "./tree.ts";

/** The blocks that a body may have, by their type. All other keys are arguments. */
export interface BlockTypes {
  [type: string]: { hasName: boolean; blocks: BlockTypes };
}

/** Parses a file. Throws an HclError for the first thing that is wrong. */
export function parseJsonFile(source: Source, types: BlockTypes): HclBody {
  const parser = new JsonParser(source);
  const root = parser.parseValue(0);
  parser.requireEnd();
  return bodyOf([root], types, root.range);
}

type Node = { range: Range } & (
  | { kind: "text"; text: string }
  | { kind: "number"; text: string }
  | { kind: "word"; word: "true" | "false" | "null" }
  | { kind: "array"; elements: readonly Node[] }
  | { kind: "object"; entries: readonly Entry[] }
);

interface Entry {
  key: { text: string; range: Range };
  value: Node;
}

const maxDepth = 200;
const space = /[ \t\r\n]*/y;
const textToken = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const numberToken = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const wordToken = /[a-zA-Z_]+/y;

class JsonParser {
  readonly #source: Source;
  #at: number;

  constructor(source: Source) {
    this.#source = source;
    this.#at = source.text.startsWith("\uFEFF") ? 1 : 0;
  }

  parseValue(depth: number): Node {
    if (depth > maxDepth) this.#fail(`it is nested more than ${maxDepth} levels deep`);
    const start = this.#skipSpace();
    const first = this.#source.text[start];
    if (first === "{")
      return {
        kind: "object",
        entries: this.#list("}", () => this.#entry(depth)),
        range: this.#since(start),
      };
    if (first === "[")
      return {
        kind: "array",
        elements: this.#list("]", () => this.parseValue(depth + 1)),
        range: this.#since(start),
      };
    if (first === '"') return { kind: "text", ...this.#text() };
    const number = this.#match(numberToken);
    if (number !== "") return { kind: "number", text: number, range: this.#since(start) };
    const word = this.#match(wordToken);
    if (word === "true" || word === "false" || word === "null")
      return { kind: "word", word, range: this.#since(start) };
    this.#at = start;
    return this.#fail(
      first === undefined ? "a value is missing at the end" : "a JSON value is required here",
    );
  }

  requireEnd(): void {
    if (this.#skipSpace() < this.#source.text.length) this.#fail("extra characters after the JSON value");
  }

  #entry(depth: number): Entry {
    const { text, range } = this.#text();
    this.#skipSpace();
    if (this.#source.text[this.#at] !== ":") this.#fail("a colon is required after a key");
    this.#at += 1;
    return { key: { text, range }, value: this.parseValue(depth + 1) };
  }

  #list<Part>(close: string, parse: () => Part): Part[] {
    const parts: Part[] = [];
    this.#at += 1;
    for (let start = this.#skipSpace(); this.#source.text[start] !== close; start = this.#skipSpace()) {
      if (parts.length > 0) {
        if (this.#source.text[start] !== ",") this.#fail(`a comma or ${close} is required here`);
        this.#at += 1;
      }
      parts.push(parse());
    }
    this.#at += 1;
    return parts;
  }

  #text(): { text: string; range: Range } {
    const start = this.#skipSpace();
    const found = this.#match(textToken);
    if (found === "")
      this.#fail(
        this.#source.text[start] === '"' ? "this text is invalid" : "a key in quotes is required here",
      );
    return { text: JSON.parse(found), range: this.#since(start) };
  }

  #skipSpace(): number {
    this.#match(space);
    return this.#at;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source.text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #since(start: number): Range {
    return { source: this.#source, start, end: this.#at };
  }

  #fail(message: string): never {
    throw new HclError(message, { source: this.#source, start: this.#at, end: this.#at + 1 });
  }
}

function bodyOf(nodes: readonly Node[], types: BlockTypes, range: Range): HclBody {
  const attributes = new Map<string, Attribute>();
  const blocks: HclBlock[] = [];
  for (const { key, value } of nodes.flatMap(entriesOf)) {
    const type = Object.hasOwn(types, key.text) ? types[key.text] : undefined;
    if (type !== undefined) blocks.push(...blocksOf(key, value, type));
    // A key for comments.
    else if (key.text !== "//")
      add({ name: key.text, nameRange: key.range, expression: expressionOf(value) }, attributes);
  }
  return { attributes, blocks, range };
}

function add(attribute: Attribute, attributes: Map<string, Attribute>): void {
  const earlier = attributes.get(attribute.name)?.nameRange;
  if (earlier !== undefined)
    throw new HclError(
      `${attribute.name} is already set in line ${positionOf(earlier.source, earlier.start).line}`,
      attribute.nameRange,
    );
  attributes.set(attribute.name, attribute);
}

function blocksOf(key: Entry["key"], value: Node, { hasName, blocks }: BlockTypes[string]): HclBlock[] {
  const block = (body: Node, labels: HclBlock["labels"]): HclBlock => ({
    type: key.text,
    typeRange: key.range,
    labels,
    body: bodyOf([body], blocks, body.range),
  });
  const each = (node: Node) => (isNull(node) ? [] : node.kind === "array" ? node.elements : [node]);
  if (!hasName) return each(value).map((body) => block(body, []));
  return each(value)
    .flatMap(entriesOf)
    .flatMap((entry) => each(entry.value).map((body) => block(body, [entry.key])));
}

/** Returns the entries of an object, or of a list of objects, which stands for one object. */
function entriesOf(node: Node): readonly Entry[] {
  if (node.kind === "object") return node.entries;
  if (node.kind === "array") return node.elements.flatMap(entriesOf);
  if (isNull(node)) return [];
  throw new HclError("an object is required here", node.range);
}

function isNull(node: Node): boolean {
  return node.kind === "word" && node.word === "null";
}

function expressionOf(node: Node): Expression {
  const { range } = node;
  switch (node.kind) {
    case "text":
      return textExpression(node.text, range);
    case "number": {
      const number = parseNumber(node.text);
      return { kind: "literal", value: number === undefined ? nullValue : numberValue(number), range };
    }
    case "word":
      return {
        kind: "literal",
        value: node.word === "null" ? nullValue : boolValue(node.word === "true"),
        range,
      };
    case "array":
      return { kind: "tuple", elements: node.elements.map(expressionOf), range };
    case "object":
      return {
        kind: "object",
        entries: node.entries.map(({ key, value }) => ({
          key: textExpression(key.text, key.range),
          value: expressionOf(value),
          isForced: true,
        })),
        range,
      };
  }
}

function textExpression(text: string, range: Range): Expression {
  let parsed: Expression | undefined;
  return {
    kind: "json text",
    text,
    range,
    parse() {
      parsed ??= parseTemplateText({ name: range.source.name, text, within: range });
      return parsed;
    },
  };
}
