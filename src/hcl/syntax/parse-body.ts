/** Files: arguments and blocks. */
import { between, positionOf, type Source } from "../source.ts";
import { parseExpression } from "./parse-expression.ts";
import { Reader } from "./reader.ts";
import { literalAt } from "./texts.ts";
import type { HclToken } from "./tokens.ts";
import type { Attribute, HclBlock, HclBody } from "./tree.ts";

/** Parses a file. Throws an HclError for the first thing that is wrong. */
export function parseFile(source: Source): HclBody {
  const reader = new Reader(source);
  return parseBody(reader, undefined);
}

type Label = HclBlock["labels"][number];

function parseBody(reader: Reader, open: HclToken | undefined): HclBody {
  const start = reader.at;
  const attributes = new Map<string, Attribute>();
  const blocks: HclBlock[] = [];
  for (;;) {
    const token = reader.peek();
    if (token.kind === "newline") reader.read();
    else if (open === undefined ? token.kind === "end" : reader.isAt("}")) break;
    else if (token.kind === "end" && open !== undefined)
      reader.fail("this block is not closed by }", open.range);
    else {
      const item = parseItem(reader);
      if ("labels" in item) blocks.push(item);
      else add(item, attributes, reader);
      requireLineEnd(reader, "labels" in item ? "a block" : "an argument");
    }
  }
  return { attributes, blocks, range: { source: reader.source, start, end: reader.at } };
}

function add(attribute: Attribute, attributes: Map<string, Attribute>, reader: Reader): void {
  const earlier = attributes.get(attribute.name);
  if (earlier !== undefined) {
    const { line } = positionOf(reader.source, earlier.nameRange.start);
    reader.fail(`${attribute.name} is already set in line ${line}`, attribute.nameRange);
  }
  attributes.set(attribute.name, attribute);
}

function parseItem(reader: Reader): Attribute | HclBlock {
  const name = reader.read();
  if (name.kind === "quote") reader.fail("the name of an argument must not be quoted", name.range);
  if (name.kind !== "name") reader.fail("an argument or a block is required here", name.range);
  if (reader.take("=") !== undefined)
    return { name: name.text, nameRange: name.range, expression: parseExpression(reader) };
  const { kind } = reader.peek();
  if (kind === "quote" || kind === "name" || reader.isAt("{")) return parseBlock(reader, name);
  return reader.fail(
    "an argument or a block is required here",
    name.range,
    `An argument has a value: ${name.text} = "..."; a block has braces: ${name.text} "name" {`,
  );
}

function parseBlock(reader: Reader, name: HclToken): HclBlock {
  const labels: Label[] = [];
  for (let token = reader.peek(); !reader.isAt("{"); token = reader.peek()) {
    if (token.kind === "name") labels.push({ text: reader.read().text, range: token.range });
    else if (token.kind === "quote") labels.push(readLabel(reader));
    else
      reader.fail(
        token.text === "=" ? "a block has no equals sign" : "a name or an opening brace is required here",
        token.range,
      );
  }
  const open = reader.read();
  const body = reader.nested(() => {
    const { kind } = reader.peek();
    const isLong = kind === "newline" || kind === "end" || reader.isAt("}");
    return isLong ? parseBody(reader, open) : parseLine(reader);
  });
  if (reader.take("}") === undefined)
    reader.fail(
      "a closing brace is required here",
      undefined,
      "A block in one line has one argument; write several on lines of their own.",
    );
  return { type: name.text, typeRange: name.range, labels, body };
}

/** Parses the body of a block in one line, which has one argument. */
function parseLine(reader: Reader): HclBody {
  const start = reader.at;
  const item = parseItem(reader);
  if ("labels" in item) reader.fail("a nested block must be on lines of its own", item.typeRange);
  return { attributes: new Map([[item.name, item]]), blocks: [], range: reader.since(start) };
}

function readLabel(reader: Reader): Label {
  const open = reader.read();
  const { source } = reader;
  let text = "";
  while (source.text[reader.at] !== '"') {
    const { at } = reader;
    if (/^[$%]\{/.test(source.text.slice(at, at + 2)))
      reader.fail("the label of a block must be a literal string", { source, start: at, end: at + 2 });
    const literal = literalAt(source, at, { kind: "quote" });
    text += literal.text;
    reader.continueAt(literal.range.end);
  }
  reader.continueAt(reader.at + 1);
  return { text, range: between(open.range, reader.since(open.range.start)) };
}

function requireLineEnd(reader: Reader, what: string): void {
  const token = reader.peek();
  if (token.kind === "newline" || token.kind === "end") return;
  // The brace that closes a block of several lines must be on a line of its own.
  reader.fail(
    `a line break is required after ${what}`,
    token.range,
    token.text === "," ? "Arguments are separated by line breaks, not by commas." : undefined,
  );
}
