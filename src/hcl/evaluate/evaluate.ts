/** Evaluates expressions: https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md#expressions. */
import { nearest } from "../../suggest.ts";
import { HclError, located } from "../hcl-error.ts";
import { type BinaryOperator, type Expression, keywordOf, type ObjectEntry } from "../syntax/tree.ts";
import { convert, textOf } from "../values/conversion.ts";
import { stringType } from "../values/types.ts";
import {
  boolValue,
  isSequenceValue,
  nullValue,
  objectValue,
  stringValue,
  tupleValue,
  type Value,
} from "../values/value.ts";
import { access, elementAt } from "./access.ts";
import { evaluateCall } from "./call.ts";
import { evaluateConditional } from "./conditional.ts";
import { evaluateFor, evaluateSplat, keyOf } from "./loops.ts";
import { applyBinary, applyUnary, operandType } from "./operators.ts";
import { type Outcome, outcomeOf, valueOf } from "./outcome.ts";
import type { Scope } from "./scope.ts";

type Of<Kind> = Extract<Expression, { kind: Kind }>;

export function evaluate(expression: Expression, scope: Scope): Value {
  scope.budget.spend(1);
  switch (expression.kind) {
    case "literal":
      return expression.value;
    case "template":
      return evaluateTemplate(expression, scope);
    case "group":
      return evaluate(expression.inner, scope);
    case "variable":
      return evaluateVariable(expression, scope);
    case "access":
      return expression.steps.reduce(access, evaluate(expression.from, scope));
    case "index":
      return elementAt(
        evaluate(expression.from, scope),
        evaluate(expression.key, scope),
        expression.bracketRange,
      );
    case "splat":
      return evaluateSplat(expression, scope, evaluate);
    case "item":
      return scope.item ?? nullValue;
    case "call":
      return evaluateCall(expression, scope, evaluate);
    case "unary":
      return evaluateUnary(expression, scope);
    case "binary":
      return evaluateBinary(expression, scope);
    case "conditional":
      return evaluateConditional(expression, scope, evaluate);
    case "tuple":
      return scope.budget.spendOn(tupleValue(expression.elements.map((each) => evaluate(each, scope))));
    case "object":
      return scope.budget.spendOn(
        objectValue(expression.entries.map((entry) => evaluateEntry(entry, scope))),
      );
    case "for":
      return evaluateFor(expression, scope, evaluate);
    case "joined":
      return evaluateJoined(expression, scope);
    case "json text":
      return evaluate(expression.parse(), scope);
  }
}

function evaluateVariable(expression: Of<"variable">, scope: Scope): Value {
  const { name, nameRange, steps } = expression;
  const value = located(nameRange, () => scope.lookUp(name, expression));
  if (value !== undefined) return steps.reduce(access, value);
  const meant = nearest(name, scope.names());
  throw new HclError(
    `there is no variable ${name}`,
    nameRange,
    meant === undefined ? `It is declared as: variable ${JSON.stringify(name)} {}` : `Did you mean ${meant}?`,
  );
}

function evaluateTemplate({ parts }: Of<"template">, scope: Scope): Value {
  const texts = parts.map((part) => {
    const value = evaluate(part, scope);
    return located(part.range, () => textIn(value));
  });
  return scope.budget.spendOn(stringValue(texts.join("")));
}

function textIn(value: Value): string {
  if (value.kind === "null") throw new HclError("null can't be in a text");
  return textOf(convert(value, stringType));
}

function evaluateJoined({ each, range }: Of<"joined">, scope: Scope): Value {
  const value = evaluate(each, scope);
  const texts = isSequenceValue(value) ? value.elements : [];
  return scope.budget.spendOn(stringValue(located(range, () => texts.map(textIn).join(""))));
}

function evaluateUnary({ operator, operand }: Of<"unary">, scope: Scope): Value {
  const value = evaluate(operand, scope);
  return located(operand.range, () => applyUnary(operator, convert(value, operandType(operator))));
}

/** Operators in a row are evaluated in a loop: thousands of them are no nesting. */
function evaluateBinary(expression: Of<"binary">, scope: Scope): Value {
  const row: Of<"binary">[] = [];
  let left: Expression = expression;
  for (; left.kind === "binary"; left = left.left) row.push(left);
  const first = left;
  let outcome = outcomeOf(() => evaluate(first, scope));
  for (const { operator, left: before, right, range } of row.reverse()) {
    scope.budget.spend(1);
    const type = operandType(operator);
    const operandOf = (given: Outcome, { range: own }: Expression): Outcome =>
      "error" in given ? given : { value: located(own, () => convert(given.value, type)) };
    const current = outcome;
    outcome = outcomeOf(() => {
      const one = operandOf(current, before);
      const other = operandOf(
        outcomeOf(() => evaluate(right, scope)),
        right,
      );
      if (operator === "&&" || operator === "||") return logical(operator, one, other);
      return located(range, () => applyBinary(operator, valueOf(one), valueOf(other)));
    });
  }
  return valueOf(outcome);
}

/** One operand may decide alone: then it does not matter if the other one has an error. */
function logical(operator: BinaryOperator, one: Outcome, other: Outcome): Value {
  const deciding = operator === "||";
  const decides = (outcome: Outcome) =>
    "value" in outcome && outcome.value.kind === "bool" && outcome.value.isTrue === deciding;
  if (decides(one) || decides(other)) return boolValue(deciding);
  for (const outcome of [one, other])
    if (valueOf(outcome).kind === "null") throw new HclError("true or false is required, not null");
  return boolValue(!deciding);
}

function evaluateEntry({ key, value, isForced }: ObjectEntry, scope: Scope): [string, Value] {
  const name = isForced ? undefined : keywordOf(key);
  if (!isForced && key.kind === "variable" && key.steps.length > 0)
    throw new HclError(
      "it is unclear what this key is",
      key.range,
      "A reference is in parentheses, a name with dots in quotes.",
    );
  return [name ?? keyOf(key, scope, evaluate), evaluate(value, scope)];
}
