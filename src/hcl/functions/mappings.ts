import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { isInteger, toDouble } from "../values/big-float.ts";
import { convert } from "../values/conversion.ts";
import { isSameType, stringType, typeName } from "../values/types.ts";
import {
  boolValue,
  type HclValue,
  isMappingValue,
  listValue,
  type MappingValue,
  mapValue,
  objectValue,
  stringValue,
  tupleValue,
  typeOf,
} from "../values/value.ts";
import {
  any,
  define,
  defineVariadic,
  elementsIn,
  type FunctionTable,
  orNull,
  sequenceIn,
  text,
  textIn,
  texts,
} from "./define.ts";

/** Functions of maps, objects, and other values with keys. */
export const mappingFunctions: FunctionTable = {
  hasindex: define([any("collection"), any("key")], ([value, key]) => {
    if (!isIndexed(value)) throw new ArgumentError(0, "a list, a map or a tuple is required");
    return boolValue(key !== undefined && entryAt(value, key) !== undefined);
  }),
  index: define([any("collection"), any("key")], ([value, key]) => {
    if (!isIndexed(value)) throw new ArgumentError(0, "a list, a map or a tuple is required");
    const found = key === undefined ? undefined : entryAt(value, key);
    if (found === undefined) throw new ArgumentError(1, "there is no element with this key");
    return found;
  }),
  keys: define([any("inputMap")], ([value]) => {
    const mapping = mappingIn(value);
    const keys = [...mapping.entries.keys()].map(stringValue);
    return mapping.kind === "map" ? listValue(stringType, keys) : tupleValue(keys);
  }),
  values: define([any("mapping")], ([value]) => {
    const mapping = mappingIn(value);
    const values = [...mapping.entries.values()];
    return mapping.kind === "map" ? listValue(mapping.element, values) : tupleValue(values);
  }),
  lookup: define([any("inputMap"), text("key"), any("default")], ([value, key, otherwise]) => {
    const mapping = mappingIn(value);
    const found = mapping.entries.get(textIn(key));
    if (otherwise === undefined) throw new HclError("the default is missing");
    const fallback = mapping.kind === "map" ? convert(otherwise, mapping.element) : otherwise;
    return found ?? fallback;
  }),
  merge: defineVariadic([], orNull(any("maps")), merge),
  zipmap: define([texts("keys"), any("values")], zip),
};

function isIndexed(value: HclValue | undefined): value is HclValue {
  return value?.kind === "list" || value?.kind === "tuple" || value?.kind === "map";
}

function entryAt(value: HclValue, key: HclValue): HclValue | undefined {
  if (value.kind === "map") return key.kind === "string" ? value.entries.get(key.text) : undefined;
  if (key.kind !== "number" || !isInteger(key.number)) return undefined;
  return sequenceIn(value).elements[toDouble(key.number)];
}

function mappingIn(value: HclValue | undefined): MappingValue {
  if (value !== undefined && isMappingValue(value)) return value;
  throw new ArgumentError(
    0,
    `a map or an object is required, not a ${value === undefined ? "nothing" : typeName(typeOf(value))}`,
  );
}

function merge(given: readonly HclValue[]): HclValue {
  const mappings = given.flatMap((each, index) => {
    if (each.kind === "null") return [];
    if (isMappingValue(each)) return [each];
    throw new ArgumentError(index, `a map or an object is required, not a ${typeName(typeOf(each))}`);
  });
  const entries = mappings.flatMap((each) => [...each.entries]);
  const [first] = given;
  const isMap = first?.kind === "map" && given.every((each) => isSameType(typeOf(each), typeOf(first)));
  return isMap ? mapValue(first.element, entries) : objectValue(entries);
}

function zip([keys, values]: readonly HclValue[]): HclValue {
  const names = elementsIn(keys).map((key, index) => {
    if (key.kind === "null") throw new ArgumentError(0, `element ${index} is null`);
    return textIn(key);
  });
  const sequence = sequenceIn(values, "a list or a tuple");
  if (sequence.kind === "set") throw new ArgumentError(1, "a list or a tuple is required, not a set");
  const { elements } = sequence;
  if (names.length !== elements.length)
    throw new HclError(`there are ${names.length} keys, but ${elements.length} values`);
  const entries = elements.map((each, index): [string, HclValue] => [names[index] ?? "", each]);
  return sequence.kind === "list" ? mapValue(sequence.element, entries) : objectValue(entries);
}
