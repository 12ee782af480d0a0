/** Expressions: https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md#expressions. */
import { between, type Range, type Source } from "../source.ts";
import { parseNumber } from "../values/big-float-text.ts";
import { boolValue, type HclValue, nullValue, numberValue } from "../values/value.ts";
import { parseFor, parseObject, parseTuple } from "./parse-collection.ts";
import { parseTemplateExpression } from "./parse-template.ts";
import { Reader } from "./reader.ts";
import type { HclToken } from "./tokens.ts";
import type { BinaryOperator, Expression, TraversalStep } from "./tree.ts";

/** Parses the text of a JSON file: a template without quotes. */
export function parseTemplateText(source: Source): Expression {
  return parseTemplateExpression(new Reader(source), { kind: "end" }, 0, parseExpression);
}

/** Parses a text that is an expression and nothing else. */
export function parseExpressionText(source: Source): Expression {
  const reader = new Reader(source);
  const expression = reader.within("skipped", () => parseExpression(reader));
  if (reader.within("skipped", () => reader.peek()).kind !== "end")
    reader.fail("extra characters after the expression");
  return expression;
}

export function parseExpression(reader: Reader): Expression {
  return reader.nested(() => {
    const condition = parseOperation(reader, 0);
    if (reader.take("?") === undefined) return condition;
    const whenTrue = parseExpression(reader);
    if (reader.take(":") === undefined)
      reader.fail(
        "a colon and the value for false are required",
        undefined,
        "As in: CONDITION ? VALUE : VALUE",
      );
    const whenFalse = parseExpression(reader);
    const range = between(condition.range, whenFalse.range);
    return { kind: "conditional", condition, whenTrue, whenFalse, range };
  });
}

/** Operators, those that bind least first. */
const levels: readonly (readonly BinaryOperator[])[] = [
  ["||"],
  ["&&"],
  ["==", "!="],
  ["<", "<=", ">", ">="],
  ["+", "-"],
  ["*", "/", "%"],
];

function parseOperation(reader: Reader, least: number): Expression {
  let left = parseOperand(reader);
  for (;;) {
    const { kind, text } = reader.peek();
    const level =
      kind === "mark" ? levels.findIndex((operators) => operators.some((each) => each === text)) : -1;
    if (level < least) return left;
    reader.read();
    const right = parseOperation(reader, level + 1);
    left = {
      kind: "binary",
      operator: text as BinaryOperator,
      left,
      right,
      range: between(left.range, right.range),
    };
  }
}

/** More accesses in a row than any file has. Each one nests the expression before it. */
const maxAccesses = 200;

function parseOperand(reader: Reader): Expression {
  return parseAccesses(reader, parseTerm(reader));
}

function parseAccesses(reader: Reader, term: Expression): Expression {
  let from = term;
  for (let count = 0; ; count++) {
    if (count > maxAccesses) reader.fail(`there are more than ${maxAccesses} accesses in a row`);
    const dot = reader.take(".");
    if (dot !== undefined) from = parseDot(reader, from, dot);
    else if (reader.isAt("[")) from = parseBrackets(reader, from);
    else return from;
  }
}

function parseDot(reader: Reader, from: Expression, dot: HclToken): Expression {
  if (reader.take("*") === undefined) return withSteps(from, readSteps(reader, dot));
  let each: Expression = { kind: "item", range: reader.since(dot.range.start) };
  // This star takes names with it, but no brackets.
  for (let next = reader.take("."); next !== undefined; next = reader.take("."))
    each = withSteps(each, [readStep(reader, next)]);
  return { kind: "splat", from, each, range: between(from.range, each.range) };
}

function readSteps(reader: Reader, dot: HclToken): TraversalStep[] {
  const steps = [readStep(reader, dot)];
  while (reader.isAt(".")) {
    const { at } = reader;
    const next = reader.read();
    if (reader.isAt("*")) {
      reader.at = at;
      break;
    }
    steps.push(readStep(reader, next));
  }
  return steps;
}

/** Reads what is behind a dot: a name or, as older files have it, a number. */
function readStep(reader: Reader, dot: HclToken): TraversalStep {
  const { kind, text, range: own } = reader.read();
  const range = between(dot.range, own);
  if (kind === "name") return { kind: "attribute", name: text, range };
  if (kind === "number" && /^\d+$/.test(text))
    return { kind: "index", key: numberOf(reader, text, own), range };
  return reader.fail("a name is required after the dot", own, "An element is accessed as in: items[0]");
}

function parseBrackets(reader: Reader, from: Expression): Expression {
  const open = reader.read();
  if (reader.take("*") !== undefined) {
    reader.requireClose("]", open);
    const item: Expression = { kind: "item", range: reader.since(open.range.start) };
    const each = reader.nested(() => parseAccesses(reader, item));
    return { kind: "splat", from, each, range: between(from.range, each.range) };
  }
  const key = reader.within("skipped", () => {
    const inner = parseExpression(reader);
    reader.requireClose("]", open);
    return inner;
  });
  const bracketRange = reader.since(open.range.start);
  const constant = constantOf(key);
  if (constant !== undefined) return withSteps(from, [{ kind: "index", key: constant, range: bracketRange }]);
  return { kind: "index", from, key, bracketRange, range: between(from.range, bracketRange) };
}

function constantOf(key: Expression): HclValue | undefined {
  if (key.kind === "literal") return key.value;
  if (key.kind !== "template") return undefined;
  const [only, ...others] = key.parts;
  return only?.kind === "literal" && others.length === 0 ? only.value : undefined;
}

function withSteps(from: Expression, added: readonly TraversalStep[]): Expression {
  const last = added.at(-1);
  if (last === undefined) return from;
  const range = between(from.range, last.range);
  if (from.kind === "variable" || from.kind === "access")
    return { ...from, steps: [...from.steps, ...added], range };
  return { kind: "access", from, steps: added, range };
}

function parseTerm(reader: Reader): Expression {
  const token = reader.peek();
  const { kind, text, range } = token;
  switch (kind) {
    case "number":
      reader.read();
      return { kind: "literal", value: numberOf(reader, text, range), range };
    case "name":
      reader.read();
      return reader.isAt("(") || reader.isAt("::") ? parseCall(reader, token) : nameOf(text, range);
    case "quote":
      reader.read();
      return parseTemplateExpression(reader, { kind: "quote" }, range.start, parseExpression);
    case "here-document": {
      reader.read();
      const [, dash, marker = ""] = /^<<(-?)(.*?)\r?\n$/s.exec(text) ?? [];
      return parseTemplateExpression(
        reader,
        { kind: "marker", marker, isFlush: dash === "-" },
        range.start,
        parseExpression,
      );
    }
    case "mark":
      return parseMarked(reader, token);
    default:
      return reader.fail(
        `an expression is required here, not ${kind === "end" ? "the end" : "a line break"}`,
        range,
      );
  }
}

function parseMarked(reader: Reader, token: HclToken): Expression {
  const { text, range } = token;
  switch (text) {
    case "-":
    case "!": {
      reader.read();
      const operand = reader.nested(() => parseOperand(reader));
      return { kind: "unary", operator: text, operand, range: between(range, operand.range) };
    }
    case "(":
      reader.read();
      return reader.within("skipped", () => {
        const inner = parseExpression(reader);
        reader.requireClose(")", token);
        return { kind: "group", inner, isTemplate: false, range: reader.since(range.start) };
      });
    case "[":
      reader.read();
      return reader.within("skipped", () =>
        reader.isAtName("for")
          ? parseFor(reader, token, parseExpression)
          : parseTuple(reader, token, parseExpression),
      );
    case "{":
      reader.read();
      return reader.within("skipped", () => reader.isAtName("for"))
        ? reader.within("skipped", () => parseFor(reader, token, parseExpression))
        : reader.within("kept", () => parseObject(reader, token, parseExpression));
    default:
      return reader.fail(`an expression is required here, not ${text}`, range);
  }
}

function numberOf(reader: Reader, text: string, range: Range): HclValue {
  const number = parseNumber(text);
  return number === undefined ? reader.fail(`invalid number ${text}`, range) : numberValue(number);
}

function nameOf(name: string, range: Range): Expression {
  if (name === "true" || name === "false")
    return { kind: "literal", value: boolValue(name === "true"), range };
  if (name === "null") return { kind: "literal", value: nullValue, range };
  return { kind: "variable", name, nameRange: range, steps: [], range };
}

function parseCall(reader: Reader, { text, range }: HclToken): Expression {
  let name = text;
  while (reader.take("::") !== undefined) {
    const part = reader.read();
    if (part.kind !== "name") reader.fail("a function's name is required after ::", part.range);
    name += `::${part.text}`;
  }
  const nameRange = reader.since(range.start);
  const open = reader.peek();
  if (reader.take("(") === undefined) reader.fail("arguments in parentheses are required", nameRange);
  return reader.within("skipped", () => {
    const given: Expression[] = [];
    let expandsLast = false;
    while (!reader.isAt(")")) {
      given.push(parseExpression(reader));
      expandsLast = reader.take("...") !== undefined;
      if (expandsLast || reader.take(",") === undefined) break;
    }
    reader.requireClose(")", open, "a comma or a closing parenthesis");
    return { kind: "call", name, nameRange, arguments: given, expandsLast, range: reader.since(range.start) };
  });
}
