/** Lists, objects, and `for`, which makes either. */
import type { ParseExpression } from "./parse-template.ts";
import { readForNames } from "./parse-template.ts";
import type { Reader } from "./reader.ts";
import type { HclToken } from "./tokens.ts";
import type { Expression, ObjectEntry } from "./tree.ts";

export function parseTuple(reader: Reader, open: HclToken, parseExpression: ParseExpression): Expression {
  const elements: Expression[] = [];
  while (!reader.isAt("]")) {
    elements.push(parseExpression(reader));
    if (reader.take(",") === undefined) break;
  }
  reader.requireClose("]", open, "a comma or a closing bracket");
  return { kind: "tuple", elements, range: reader.since(open.range.start) };
}

export function parseObject(reader: Reader, open: HclToken, parseExpression: ParseExpression): Expression {
  const entries: ObjectEntry[] = [];
  for (;;) {
    while (reader.peek().kind === "newline") reader.read();
    if (reader.isAt("}")) break;
    const isForced = reader.isAt("(");
    const key = parseExpression(reader);
    if (reader.take("=") === undefined && reader.take(":") === undefined)
      reader.fail(
        "an equals sign and a value are required after a key",
        undefined,
        "A key with dots or spaces is in quotes.",
      );
    entries.push({ key, value: parseExpression(reader), isForced });
    if (reader.peek().kind !== "newline" && reader.take(",") === undefined) break;
  }
  reader.requireClose("}", open, "a comma, a line break or a closing brace");
  return { kind: "object", entries, range: reader.since(open.range.start) };
}

export function parseFor(reader: Reader, open: HclToken, parseExpression: ParseExpression): Expression {
  reader.read();
  const { keyName, valueName } = readForNames(reader);
  const from = parseExpression(reader);
  if (reader.take(":") === undefined) reader.fail("a colon is required after what for goes through");
  const first = parseExpression(reader);
  const isObject = open.text === "{";
  const arrow = reader.take("=>");
  if (arrow !== undefined && !isObject)
    reader.fail("only an object has keys: for in brackets makes a tuple", arrow.range);
  if (arrow === undefined && isObject)
    reader.fail("a key is required, as in: {for item in items: item.name => item}", first.range);
  const value = arrow === undefined ? first : parseExpression(reader);
  const group = reader.take("...");
  if (group !== undefined && !isObject)
    reader.fail("only an object's values are collected by key", group.range);
  let condition: Expression | undefined;
  if (reader.isAtName("if")) {
    reader.read();
    condition = parseExpression(reader);
  }
  reader.requireClose(isObject ? "}" : "]", open);
  const key = arrow === undefined ? undefined : first;
  const range = reader.since(open.range.start);
  return {
    kind: "for",
    keyName,
    valueName,
    from,
    key,
    value,
    condition,
    isGrouping: group !== undefined,
    range,
  };
}
