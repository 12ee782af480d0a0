import type { Range } from "../source.ts";
import type { HclValue } from "../values/value.ts";

/** An expression, with its place. */
export type Expression = { range: Range } & (
  | { kind: "literal"; value: HclValue }
  /** A text with `${...}` in it, or only a text. */
  | { kind: "template"; parts: readonly Expression[] }
  /** An expression in parentheses, or a template that is only `${...}`: the value of the expression, of any type. */
  | { kind: "group"; inner: Expression; isTemplate: boolean }
  /** A variable, and what is in it: `item.name[0]`. */
  | { kind: "variable"; name: string; nameRange: Range; steps: readonly TraversalStep[] }
  | { kind: "access"; from: Expression; steps: readonly TraversalStep[] }
  | { kind: "index"; from: Expression; key: Expression; bracketRange: Range }
  /** `from[*].each`: `each` is evaluated for every element, which it has as its `item`. */
  | { kind: "splat"; from: Expression; each: Expression }
  | { kind: "item" }
  | { kind: "call"; name: string; nameRange: Range; arguments: readonly Expression[]; expandsLast: boolean }
  | { kind: "unary"; operator: UnaryOperator; operand: Expression }
  | { kind: "binary"; operator: BinaryOperator; left: Expression; right: Expression }
  | { kind: "conditional"; condition: Expression; whenTrue: Expression; whenFalse: Expression }
  | { kind: "tuple"; elements: readonly Expression[] }
  | { kind: "object"; entries: readonly ObjectEntry[] }
  | ForExpression
  /** `%{for}` in a template: the texts that the expression makes, one after another. */
  | { kind: "joined"; each: Expression }
  /** A text of a JSON file, a template that is parsed when it is needed. */
  | { kind: "json text"; text: string; parse(): Expression }
);

export interface ForExpression {
  kind: "for";
  keyName: string | undefined;
  valueName: string;
  from: Expression;
  /** Makes the keys of an object; a tuple has none. */
  key: Expression | undefined;
  value: Expression;
  condition: Expression | undefined;
  /** True for `...`: values with the same key are collected. */
  isGrouping: boolean;
}

/** `key = value`. A key that is only a name stands for itself, unless it is in parentheses. */
export interface ObjectEntry {
  key: Expression;
  value: Expression;
  isForced: boolean;
}

/** `.name`, `[0]` or `["name"]`. */
export type TraversalStep = { range: Range } & (
  | { kind: "attribute"; name: string }
  | { kind: "index"; key: HclValue }
);

export type UnaryOperator = "-" | "!";
export type BinaryOperator =
  | "||"
  | "&&"
  | "=="
  | "!="
  | "<"
  | "<="
  | ">"
  | ">="
  | "+"
  | "-"
  | "*"
  | "/"
  | "%";

export interface Attribute {
  name: string;
  nameRange: Range;
  expression: Expression;
}

export interface HclBlock {
  type: string;
  typeRange: Range;
  labels: readonly { text: string; range: Range }[];
  body: HclBody;
}

export interface HclBody {
  attributes: ReadonlyMap<string, Attribute>;
  blocks: readonly HclBlock[];
  range: Range;
}

/** Returns the name that an expression consists of, if it is no more: also `null`, `true` and `false`. */
export function keywordOf(expression: Expression): string | undefined {
  switch (expression.kind) {
    case "variable":
      return expression.steps.length === 0 ? expression.name : undefined;
    case "literal": {
      const { value } = expression;
      return value.kind === "null" ? "null" : value.kind === "bool" ? String(value.isTrue) : undefined;
    }
    case "json text": {
      // JSON has no other way to write a name.
      return /^[\p{ID_Start}_][\p{ID_Continue}-]*$/u.test(expression.text) ? expression.text : undefined;
    }
    default:
      return undefined;
  }
}
