import { HclError, located } from "../hcl-error.ts";
import type { Expression, ForExpression } from "../syntax/tree.ts";
import { convert, textOf } from "../values/conversion.ts";
import { isSameType, stringType, typeName } from "../values/types.ts";
import {
  elementsOf,
  type HclValue,
  isSequenceValue,
  listValue,
  objectValue,
  tupleValue,
  typeOf,
} from "../values/value.ts";
import { type EvalContext, type Evaluate, withLoopVariables } from "./eval-context.ts";
import { isTrue } from "./operators.ts";

type Of<Kind> = Extract<Expression, { kind: Kind }>;

/** Evaluates `[for ...]` or `{for ...}`. */
export function evaluateFor(
  loop: ForExpression & Expression,
  context: EvalContext,
  evaluate: Evaluate,
): HclValue {
  const from = evaluate(loop.from, context);
  const elements = elementsOf(from);
  if (elements === undefined)
    throw new HclError(
      from.kind === "null"
        ? "for requires a list or an object, not null"
        : `for can't iterate over a ${typeName(typeOf(from))}`,
      loop.from.range,
    );
  const made: HclValue[] = [];
  const grouped = new Map<string, HclValue[]>();
  for (const { key, value } of elements) {
    const variables = new Map([[loop.valueName, value]]);
    if (loop.keyName !== undefined && loop.keyName !== loop.valueName) variables.set(loop.keyName, key());
    const within = withLoopVariables(context, variables);
    if (loop.condition !== undefined && !isIncluded(loop.condition, within, evaluate)) continue;
    if (loop.key === undefined) made.push(evaluate(loop.value, within));
    else {
      const name = evaluateKey(loop.key, within, evaluate);
      const before = grouped.getOrInsert(name, []);
      if (before.length > 0 && !loop.isGrouping)
        throw new HclError(
          `two elements have the key ${JSON.stringify(name)}`,
          loop.key.range,
          "With ... after the value, values with the same key are collected.",
        );
      before.push(evaluate(loop.value, within));
    }
  }
  if (loop.key === undefined) return context.budget.spendOn(tupleValue(made));
  return context.budget.spendOn(
    objectValue(
      [...grouped].map(([name, values]): [string, HclValue] => {
        const [first] = values;
        return [name, loop.isGrouping || first === undefined ? tupleValue(values) : first];
      }),
    ),
  );
}

function isIncluded(condition: Expression, context: EvalContext, evaluate: Evaluate): boolean {
  const value = evaluate(condition, context);
  return located(condition.range, () => isTrue(value));
}

/** Evaluates a key of an object. */
export function evaluateKey(key: Expression, context: EvalContext, evaluate: Evaluate): string {
  const value = evaluate(key, context);
  if (value.kind === "null") throw new HclError("a key can't be null", key.range);
  return located(key.range, () => textOf(convert(value, stringType)));
}

/** Evaluates `from[*]...` for each element. A value that is not a list counts as a list of one element, and null as an empty one. */
export function evaluateSplat(
  { from, each }: Of<"splat">,
  context: EvalContext,
  evaluate: Evaluate,
): HclValue {
  const source = evaluate(from, context);
  if (source.kind === "null") {
    const isList = ["list", "set", "tuple"].includes(source.type.kind);
    if (isList) throw new HclError("[*] can't be applied to null", from.range);
    return tupleValue([]);
  }
  const elements = isSequenceValue(source) ? source.elements : [source];
  const made = elements.map((item) => evaluate(each, { ...context, item }));
  if (source.kind !== "list" && source.kind !== "set") return context.budget.spendOn(tupleValue(made));
  const [first] = made;
  // An empty list does not tell the type of its results.
  if (first === undefined) return listValue({ kind: "dynamic" }, []);
  const type = typeOf(first);
  if (!made.every((value) => isSameType(typeOf(value), type)))
    throw new HclError(
      "the elements of the result have different types",
      each.range,
      "As in: [for item in items: item.name]",
    );
  return context.budget.spendOn(listValue(type, made));
}
