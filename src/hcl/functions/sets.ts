import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { convert, unify } from "../values/conversion.ts";
import { isEqual, setValue } from "../values/equality.ts";
import { dynamicType, isSameType, setOf, type Type, tupleOf, typeKey } from "../values/types.ts";
import { boolValue, type HclValue, isSequenceValue, listValue, tupleValue, typeOf } from "../values/value.ts";
import { any, define, defineVariadic, elementsIn, type FunctionTable, set } from "./define.ts";

type Elements = readonly HclValue[];

export const setFunctions: FunctionTable = {
  sethaselement: define([set("set"), any("elem")], ([value, element]) =>
    boolValue(element !== undefined && has(elementsIn(value), element)),
  ),
  setunion: combination((one, other) => [...one, ...other]),
  setintersection: combination((one, other) => one.filter((each) => has(other, each))),
  setsubtract: define(
    [set("a"), set("b")],
    combine((one, other) => one.filter((each) => !has(other, each))),
  ),
  setsymmetricdifference: combination((one, other) => [
    ...one.filter((each) => !has(other, each)),
    ...other.filter((each) => !has(one, each)),
  ]),
  setproduct: defineVariadic([], any("sets"), (given, budget) => {
    if (given.length < 2) throw new HclError("at least two sets are required");
    const types = given.map(productTypeOf);
    const count = given.reduce((product, each) => product * elementsIn(each).length, 1);
    budget.spend(count * given.length);
    let products: Elements[] = [[]];
    for (const [index, each] of given.entries()) {
      const elements = elementsIn(each).map((element) => convert(element, types[index] ?? dynamicType));
      products = products.flatMap((before) => elements.map((element) => [...before, element]));
    }
    const made = products.map(tupleValue);
    const type = tupleOf(types);
    return given.some(({ kind }) => kind === "set") ? setValue(type, made) : listValue(type, made);
  }),
};

function has(elements: Elements, element: HclValue): boolean {
  return elements.some((each) => isEqual(each, element));
}

function combination(operation: (one: Elements, other: Elements) => Elements) {
  return defineVariadic([set("first_set")], set("other_sets"), combine(operation));
}

/** Returns a function that converts all sets to one type, and combines them from left to right. */
function combine(operation: (one: Elements, other: Elements) => Elements) {
  return (given: readonly HclValue[]): HclValue => {
    const types = given.flatMap((each) => (each.kind === "set" && !isUntyped(each) ? [each.element] : []));
    const distinct = [...new Map(types.map((type) => [typeKey(type), type])).values()];
    const element = distinct.length === 0 ? dynamicType : unify(distinct, true)?.type;
    if (element === undefined) throw new HclError("the elements of the sets must have compatible types");
    const [first = [], ...others] = given.map((each) => elementsIn(convert(each, setOf(element))));
    return setValue(element, others.reduce(operation, first));
  };
}

function isUntyped(value: Extract<HclValue, { kind: "list" | "set" }>): boolean {
  return value.elements.length === 0 && isSameType(value.element, dynamicType);
}

function productTypeOf(value: HclValue, index: number): Type {
  if (value.kind === "set" || value.kind === "list") return value.element;
  if (!isSequenceValue(value)) throw new ArgumentError(index, "a set or a list is required");
  if (value.elements.length === 0) return dynamicType;
  const type = unify(value.elements.map(typeOf), true)?.type;
  if (type === undefined) throw new ArgumentError(index, "all elements must be of the same type");
  return type;
}
