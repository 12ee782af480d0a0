import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { convert, unify } from "../values/conversion.ts";
import { isEqual } from "../values/equality.ts";
import { dynamicType, listOf, stringType, type Type, typeName } from "../values/types.ts";
import {
  boolValue,
  distinctTypes,
  type HclValue,
  integerValue,
  isMappingValue,
  isSequenceValue,
  listValue,
  tupleValue,
  typeOf,
} from "../values/value.ts";
import {
  any,
  define,
  defineVariadic,
  elementsIn,
  type FunctionTable,
  integerIn,
  list,
  number,
  orNull,
  sequenceIn,
  textIn,
  texts,
} from "./define.ts";

/** Functions of lists and tuples. */
export const sequenceFunctions: FunctionTable = {
  length: define([any("collection")], ([value]) => {
    if (value !== undefined && isMappingValue(value) && value.kind === "map")
      return integerValue(value.entries.size);
    return integerValue(sequenceIn(value, "a list, a map or a tuple").elements.length);
  }),
  element: define([any("list"), number("index")], (given) => elementOf(given)),
  coalesce: defineVariadic([], orNull(any("vals")), coalesce),
  coalescelist: defineVariadic([], orNull(any("vals")), (given) => {
    const found = given.map(listOrNull).find((each) => each !== undefined && each.elements.length > 0);
    if (found === undefined) throw new HclError("all lists are empty or null");
    return found;
  }),
  compact: define([texts("list")], ([value]) =>
    listValue(
      stringType,
      elementsIn(value).filter((each) => each.kind !== "null" && textIn(each) !== ""),
    ),
  ),
  concat: defineVariadic([], any("seqs"), concat),
  contains: define([any("list"), any("value")], ([sequence, value]) =>
    boolValue(elementsIn(sequence).some((each) => value !== undefined && isEqual(each, value))),
  ),
  distinct: define([list("list")], ([value]) => {
    const kept: HclValue[] = [];
    for (const each of elementsIn(value)) if (!kept.some((other) => isEqual(each, other))) kept.push(each);
    return listValue(elementTypeOf(value), kept);
  }),
  chunklist: define([list("list"), number("size")], chunks),
  flatten: define([any("list")], ([value]) => tupleValue(flattened(sequenceIn(value).elements))),
  indexof: define([any("list"), any("value")], ([sequence, value]) => {
    const { elements } = orderedIn(sequence);
    if (elements.length === 0) throw new HclError("the list is empty");
    const index = elements.findIndex((each) => value !== undefined && isEqual(each, value));
    if (index < 0) throw new HclError("the list has no such element");
    return integerValue(index);
  }),
  reverselist: define([any("list")], ([value]) => {
    const sequence = sequenceIn(value);
    const elements = [...sequence.elements].reverse();
    return sequence.kind === "tuple" ? tupleValue(elements) : listValue(sequence.element, elements);
  }),
  slice: define([any("list"), number("start_index"), number("end_index")], slice),
};

function listOrNull(value: HclValue) {
  const isNull = value.kind === "null" && (value.type.kind === "list" || value.type.kind === "tuple");
  return isNull ? undefined : orderedIn(value);
}

/** Returns a list or a tuple: what has an order. */
function orderedIn(value: HclValue | undefined) {
  const sequence = sequenceIn(value, "a list or a tuple");
  if (sequence.kind === "set") throw new HclError("a list or a tuple is required, not a set");
  return sequence;
}

function elementTypeOf(value: HclValue | undefined): Type {
  return value?.kind === "list" ? value.element : dynamicType;
}

function elementOf(given: readonly HclValue[]): HclValue {
  const { elements } = orderedIn(given[0]);
  const index = integerIn(given, 1);
  const found = elements.at(index % elements.length);
  if (found === undefined) throw new HclError("the list is empty");
  return found;
}

function coalesce(given: readonly HclValue[]): HclValue {
  const type = unify(distinctTypes(given), true)?.type;
  if (type === undefined) throw new HclError("all arguments must have the same type");
  const found = given.find((each) => each.kind !== "null");
  if (found === undefined) throw new HclError("all arguments are null");
  return convert(found, type);
}

function concat(given: readonly HclValue[]): HclValue {
  if (given.length === 0) throw new HclError("at least one argument is required");
  const common = given.every((each) => each.kind === "list")
    ? unify(distinctTypes(given), true)?.type
    : undefined;
  if (common?.kind === "list")
    return listValue(
      common.element,
      given.flatMap((each) => elementsIn(convert(each, common))),
    );
  return tupleValue(
    given.flatMap((each, index) => {
      if (each.kind === "list" || each.kind === "tuple") return each.elements;
      throw new ArgumentError(index, `a list or a tuple is required, not a ${typeName(typeOf(each))}`);
    }),
  );
}

function chunks(given: readonly HclValue[]): HclValue {
  const elements = elementsIn(given[0]);
  const size = integerIn(given, 1);
  if (size < 0) throw new ArgumentError(1, "the size must be positive");
  const type = elementTypeOf(given[0]);
  const made: HclValue[] = [];
  const step = size === 0 ? Math.max(1, elements.length) : size;
  for (let start = 0; start < elements.length; start += step)
    made.push(listValue(type, elements.slice(start, start + step)));
  return listValue(listOf(type), made);
}

function flattened(elements: readonly HclValue[]): HclValue[] {
  return elements.flatMap((each) => (isSequenceValue(each) ? flattened(each.elements) : [each]));
}

function slice(given: readonly HclValue[]): HclValue {
  const sequence = orderedIn(given[0]);
  const { length } = sequence.elements;
  const [start, end] = [integerIn(given, 1), integerIn(given, 2)];
  if (start < 0 || start > length) throw new ArgumentError(1, `the start must be from 0 to ${length}`);
  if (end < 0 || end > length) throw new ArgumentError(2, `the end must be from 0 to ${length}`);
  if (start > end) throw new ArgumentError(1, "the start must not be greater than the end");
  const elements = sequence.elements.slice(start, end);
  return sequence.kind === "tuple" ? tupleValue(elements) : listValue(sequence.element, elements);
}
