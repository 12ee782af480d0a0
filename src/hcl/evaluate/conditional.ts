import { HclError, located } from "../hcl-error.ts";
import { between } from "../source.ts";
import type { Expression } from "../syntax/tree.ts";
import { conversionOf, unify } from "../values/conversion.ts";
import type { Conversion } from "../values/converter.ts";
import { isSameType, type Type, typeName } from "../values/types.ts";
import { type HclValue, typeOf } from "../values/value.ts";
import type { EvalContext, Evaluate } from "./eval-context.ts";
import { isTrue } from "./operators.ts";
import { type EvalOutcome, outcomeOf, valueOf } from "./outcome.ts";

type Conditional = Extract<Expression, { kind: "conditional" }>;

/** Evaluates `condition ? whenTrue : whenFalse`. Both values are converted to one type. An error in the value that is not chosen is ignored. */
export function evaluateConditional(
  expression: Conditional,
  context: EvalContext,
  evaluate: Evaluate,
): HclValue {
  const { condition, whenTrue, whenFalse } = expression;
  const outcomes = [whenTrue, whenFalse].map((each) => outcomeOf(() => evaluate(each, context)));
  const [conversionOfTrue, conversionOfFalse] = conversionsOf(outcomes, expression);
  const given = evaluate(condition, context);
  const isChosen = located(condition.range, () => isTrue(given));
  const [outcome, conversion, { range }] = isChosen
    ? [outcomes[0], conversionOfTrue, whenTrue]
    : [outcomes[1], conversionOfFalse, whenFalse];
  const value = outcome === undefined ? given : valueOf(outcome);
  return conversion === undefined ? value : located(range, () => conversion(value));
}

function conversionsOf(
  outcomes: readonly EvalOutcome[],
  { whenTrue, whenFalse }: Conditional,
): readonly (Conversion | undefined)[] {
  const types = outcomes.flatMap((outcome) => ("value" in outcome ? [typeOf(outcome.value)] : []));
  const [one, other] = types;
  if (one === undefined || other === undefined) return [];
  if (one.kind === "dynamic") return [conversionOf(one, other, true)];
  if (other.kind === "dynamic") return [undefined, conversionOf(other, one, true)];
  const unified = unify([one, other], true);
  if (unified !== undefined) return unified.conversions;
  throw new HclError(
    `the values for true and for false have different types: ${difference(one, other)}`,
    between(whenTrue.range, whenFalse.range),
    one.kind === "object" ? "Objects need the same attributes." : undefined,
  );
}

/** Says in what two types differ. */
function difference(one: Type, other: Type): string {
  if (one.kind === "object" && other.kind === "object") {
    const names = [...new Set([...one.attributes.keys(), ...other.attributes.keys()])];
    for (const name of names) {
      const [left, right] = [one.attributes.get(name), other.attributes.get(name)];
      if (left === undefined || right === undefined)
        return `only the value for ${left === undefined ? "false" : "true"} has ${name}`;
      if (!isSameType(left, right)) return `${name}: ${difference(left, right)}`;
    }
  }
  if (one.kind === "tuple" && other.kind === "tuple" && one.elements.length === other.elements.length)
    for (const [index, left] of one.elements.entries()) {
      const right = other.elements[index];
      if (right !== undefined && !isSameType(left, right))
        return `element ${index}: ${difference(left, right)}`;
    }
  return `${typeName(one)} and ${typeName(other)}`;
}
