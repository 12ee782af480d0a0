import { nearest } from "../../suggest.ts";
import { HclError } from "../hcl-error.ts";
import type { Range } from "../source.ts";
import type { TraversalStep } from "../syntax/tree.ts";
import { isInteger, toDouble } from "../values/big-float.ts";
import { convert, textOf } from "../values/conversion.ts";
import { numberType, stringType, typeName } from "../values/types.ts";
import { type HclValue, isMappingValue, typeOf } from "../values/value.ts";

/** Returns what is in a value at a step, as `.name` or `[0]`. */
export function access(value: HclValue, step: TraversalStep): HclValue {
  return step.kind === "attribute"
    ? attributeOf(value, step.name, step.range)
    : elementAt(value, step.key, step.range);
}

function attributeOf(value: HclValue, name: string, range: Range): HclValue {
  if (value.kind === "null") throw new HclError(`there is no ${name} in null`, range);
  if (isMappingValue(value)) return entryOf(value, name, range);
  throw new HclError(
    `there is no ${name} in a ${typeName(typeOf(value))}`,
    range,
    value.kind === "tuple" || value.kind === "list"
      ? `Write [0].${name} for one element, or [*].${name} for all.`
      : undefined,
  );
}

function entryOf(
  { entries, kind }: Extract<HclValue, { entries: unknown }>,
  name: string,
  range: Range,
): HclValue {
  const found = entries.get(name);
  if (found !== undefined) return found;
  const meant = nearest(name, entries.keys());
  const hint =
    meant === undefined
      ? `There are: ${[...entries.keys()].slice(0, 20).join(", ")}.`
      : `Did you mean ${meant}?`;
  throw new HclError(
    `the ${kind} has no ${JSON.stringify(name)}`,
    range,
    entries.size === 0 ? "It is empty." : hint,
  );
}

/** Returns the element of a list or an object with a key. */
export function elementAt(value: HclValue, key: HclValue, range: Range): HclValue {
  if (value.kind === "null") throw new HclError("null has no elements", range);
  if (key.kind === "null") throw new HclError("the index is null", range);
  if (isMappingValue(value)) return entryOf(value, textOf(converted(key, stringType, range)), range);
  if (value.kind === "set")
    throw new HclError(
      "a set has no indices",
      range,
      "for goes through its elements; sort makes a list of texts.",
    );
  if (value.kind !== "list" && value.kind !== "tuple")
    throw new HclError(`a ${typeName(typeOf(value))} has no elements`, range);
  const index = converted(key, numberType, range);
  if (index.kind !== "number" || !isInteger(index.number))
    throw new HclError("the index is not a whole number", range);
  const found = value.elements[toDouble(index.number)];
  if (found !== undefined) return found;
  const count = value.elements.length;
  throw new HclError(
    `there is no element ${toDouble(index.number)}`,
    range,
    count === 0 ? "The list is empty." : `There are ${count}, the first one is 0.`,
  );
}

function converted(key: HclValue, type: typeof numberType, range: Range): HclValue {
  try {
    return convert(key, type);
  } catch (error) {
    if (error instanceof HclError) throw new HclError(`invalid index: ${error.message}`, range);
    throw error;
  }
}
