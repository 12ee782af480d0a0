/** Evaluates expressions: https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md#expressions. */
import { nearest } from "../../suggest.ts";
import { HclError, located } from "../hcl-error.ts";
import { type BinaryOperator, type Expression, keywordOf, type ObjectEntry } from "../syntax/tree.ts";
import { convert, textOf } from "../values/conversion.ts";
import { stringType } from "../values/types.ts";
import {
  boolValue,
  type HclValue,
  isSequenceValue,
  nullValue,
  objectValue,
  stringValue,
  tupleValue,
} from "../values/value.ts";
import { access, elementAt } from "./access.ts";
import { evaluateCall } from "./call.ts";
import { evaluateConditional } from "./conditional.ts";
import type { EvalContext } from "./eval-context.ts";
import { evaluateFor, evaluateKey, evaluateSplat } from "./loops.ts";
import { applyBinary, applyUnary, operandType } from "./operators.ts";
import { type EvalOutcome, outcomeOf, valueOf } from "./outcome.ts";

type Of<Kind> = Extract<Expression, { kind: Kind }>;

export function evaluate(expression: Expression, context: EvalContext): HclValue {
  context.budget.spend(1);
  switch (expression.kind) {
    case "literal":
      return expression.value;
    case "template":
      return evaluateTemplate(expression, context);
    case "group":
      return evaluate(expression.inner, context);
    case "variable":
      return evaluateVariable(expression, context);
    case "access":
      return expression.steps.reduce(access, evaluate(expression.from, context));
    case "index":
      return elementAt(
        evaluate(expression.from, context),
        evaluate(expression.key, context),
        expression.bracketRange,
      );
    case "splat":
      return evaluateSplat(expression, context, evaluate);
    case "item":
      return context.item ?? nullValue;
    case "call":
      return evaluateCall(expression, context, evaluate);
    case "unary":
      return evaluateUnary(expression, context);
    case "binary":
      return evaluateBinary(expression, context);
    case "conditional":
      return evaluateConditional(expression, context, evaluate);
    case "tuple":
      return context.budget.spendOn(tupleValue(expression.elements.map((each) => evaluate(each, context))));
    case "object":
      return context.budget.spendOn(
        objectValue(expression.entries.map((entry) => evaluateEntry(entry, context))),
      );
    case "for":
      return evaluateFor(expression, context, evaluate);
    case "joined":
      return evaluateJoined(expression, context);
    case "json text":
      return evaluate(expression.parse(), context);
  }
}

function evaluateVariable(expression: Of<"variable">, context: EvalContext): HclValue {
  const { name, nameRange, steps } = expression;
  const value = located(nameRange, () => context.lookUp(name, expression));
  if (value !== undefined) return steps.reduce(access, value);
  const meant = nearest(name, context.names());
  throw new HclError(
    `there is no variable ${name}`,
    nameRange,
    meant === undefined ? `It is declared as: variable ${JSON.stringify(name)} {}` : `Did you mean ${meant}?`,
  );
}

function evaluateTemplate({ parts }: Of<"template">, context: EvalContext): HclValue {
  const texts = parts.map((part) => {
    const value = evaluate(part, context);
    return located(part.range, () => textIn(value));
  });
  return context.budget.spendOn(stringValue(texts.join("")));
}

function textIn(value: HclValue): string {
  if (value.kind === "null") throw new HclError("null can't be in a text");
  return textOf(convert(value, stringType));
}

function evaluateJoined({ each, range }: Of<"joined">, context: EvalContext): HclValue {
  const value = evaluate(each, context);
  const texts = isSequenceValue(value) ? value.elements : [];
  return context.budget.spendOn(stringValue(located(range, () => texts.map(textIn).join(""))));
}

function evaluateUnary({ operator, operand }: Of<"unary">, context: EvalContext): HclValue {
  const value = evaluate(operand, context);
  return located(operand.range, () => applyUnary(operator, convert(value, operandType(operator))));
}

/** Evaluates a row of operators in a loop, so that thousands of them do not exhaust the stack. */
function evaluateBinary(expression: Of<"binary">, context: EvalContext): HclValue {
  const row: Of<"binary">[] = [];
  let left: Expression = expression;
  for (; left.kind === "binary"; left = left.left) row.push(left);
  const first = left;
  let outcome = outcomeOf(() => evaluate(first, context));
  for (const { operator, left: before, right, range } of row.reverse()) {
    context.budget.spend(1);
    const type = operandType(operator);
    const operandOf = (given: EvalOutcome, { range: own }: Expression): EvalOutcome =>
      "error" in given ? given : { value: located(own, () => convert(given.value, type)) };
    const current = outcome;
    outcome = outcomeOf(() => {
      const one = operandOf(current, before);
      const other = operandOf(
        outcomeOf(() => evaluate(right, context)),
        right,
      );
      if (operator === "&&" || operator === "||") return logical(operator, one, other);
      return located(range, () => applyBinary(operator, valueOf(one), valueOf(other)));
    });
  }
  return valueOf(outcome);
}

/** Applies `&&` or `||`. If one operand decides alone, an error of the other one is ignored. */
function logical(operator: BinaryOperator, one: EvalOutcome, other: EvalOutcome): HclValue {
  const deciding = operator === "||";
  const decides = (outcome: EvalOutcome) =>
    "value" in outcome && outcome.value.kind === "bool" && outcome.value.isTrue === deciding;
  if (decides(one) || decides(other)) return boolValue(deciding);
  for (const outcome of [one, other])
    if (valueOf(outcome).kind === "null") throw new HclError("true or false is required, not null");
  return boolValue(!deciding);
}

function evaluateEntry({ key, value, isForced }: ObjectEntry, context: EvalContext): [string, HclValue] {
  const name = isForced ? undefined : keywordOf(key);
  if (!isForced && key.kind === "variable" && key.steps.length > 0)
    throw new HclError(
      "ambiguous key",
      key.range,
      "Put a reference in parentheses, and a name with dots in quotes.",
    );
  return [name ?? evaluateKey(key, context, evaluate), evaluate(value, context)];
}
