import { HclError, located } from "../hcl-error.ts";
import type { Expression, ForExpression } from "../syntax/tree.ts";
import { convert, textOf } from "../values/conversion.ts";
import { isSameType, stringType, typeName } from "../values/types.ts";
import {
  elementsOf,
  isSequenceValue,
  listValue,
  objectValue,
  tupleValue,
  typeOf,
  type Value,
} from "../values/value.ts";
import { isTrue } from "./operators.ts";
import { type Evaluate, type Scope, withVariables } from "./scope.ts";

type Of<Kind> = Extract<Expression, { kind: Kind }>;

/** Evaluates `[for ...]` or `{for ...}`. */
export function evaluateFor(loop: ForExpression & Expression, scope: Scope, evaluate: Evaluate): Value {
  const from = evaluate(loop.from, scope);
  const elements = elementsOf(from);
  if (elements === undefined)
    throw new HclError(
      from.kind === "null"
        ? "for goes through a list or an object, not null"
        : `for can't go through a ${typeName(typeOf(from))}`,
      loop.from.range,
    );
  const made: Value[] = [];
  const grouped = new Map<string, Value[]>();
  for (const { key, value } of elements) {
    const variables = new Map([[loop.valueName, value]]);
    if (loop.keyName !== undefined && loop.keyName !== loop.valueName) variables.set(loop.keyName, key());
    const within = withVariables(scope, variables);
    if (loop.condition !== undefined && !isIncluded(loop.condition, within, evaluate)) continue;
    if (loop.key === undefined) made.push(evaluate(loop.value, within));
    else {
      const name = keyOf(loop.key, within, evaluate);
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
  if (loop.key === undefined) return scope.budget.spendOn(tupleValue(made));
  return scope.budget.spendOn(
    objectValue(
      [...grouped].map(([name, values]): [string, Value] => {
        const [first] = values;
        return [name, loop.isGrouping || first === undefined ? tupleValue(values) : first];
      }),
    ),
  );
}

function isIncluded(condition: Expression, scope: Scope, evaluate: Evaluate): boolean {
  const value = evaluate(condition, scope);
  return located(condition.range, () => isTrue(value));
}

/** Evaluates a key of an object. */
export function keyOf(key: Expression, scope: Scope, evaluate: Evaluate): string {
  const value = evaluate(key, scope);
  if (value.kind === "null") throw new HclError("a key can't be null", key.range);
  return located(key.range, () => textOf(convert(value, stringType)));
}

/** Evaluates `from[*]...`: for each element, or for a value that is no list as for a list of it alone; null is none. */
export function evaluateSplat({ from, each }: Of<"splat">, scope: Scope, evaluate: Evaluate): Value {
  const source = evaluate(from, scope);
  if (source.kind === "null") {
    const isList = ["list", "set", "tuple"].includes(source.type.kind);
    if (isList) throw new HclError("[*] can't go through null", from.range);
    return tupleValue([]);
  }
  const elements = isSequenceValue(source) ? source.elements : [source];
  const made = elements.map((item) => evaluate(each, { ...scope, item }));
  if (source.kind !== "list" && source.kind !== "set") return scope.budget.spendOn(tupleValue(made));
  const [first] = made;
  // Nothing tells the type of what an empty list would have had.
  if (first === undefined) return listValue({ kind: "dynamic" }, []);
  const type = typeOf(first);
  if (!made.every((value) => isSameType(typeOf(value), type)))
    throw new HclError(
      "the elements of the result have different types",
      each.range,
      "As in: [for item in items: item.name]",
    );
  return scope.budget.spendOn(listValue(type, made));
}
