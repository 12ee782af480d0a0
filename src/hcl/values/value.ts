import { type BigFloat, fromInteger } from "./big-float.ts";
import { boolType, dynamicType, numberType, stringType, type Type, typeKey } from "./types.ts";

/** A value of an expression. Keys of a map or an object are sorted. */
export type HclValue =
  | { kind: "null"; type: Type }
  | { kind: "string"; text: string }
  | { kind: "number"; number: BigFloat }
  | { kind: "bool"; isTrue: boolean }
  | { kind: "list" | "set"; element: Type; elements: readonly HclValue[] }
  | { kind: "tuple"; elements: readonly HclValue[] }
  | { kind: "map"; element: Type; entries: ReadonlyMap<string, HclValue> }
  | { kind: "object"; entries: ReadonlyMap<string, HclValue> };

export type SequenceValue = Extract<HclValue, { elements: readonly HclValue[] }>;
export type MappingValue = Extract<HclValue, { entries: ReadonlyMap<string, HclValue> }>;

export const nullOf = (type: Type): HclValue => ({ kind: "null", type });
export const nullValue: HclValue = nullOf(dynamicType);
export const numberValue = (number: BigFloat): HclValue => ({ kind: "number", number });
/** Returns an integer. Small ones, as counts and indices are, are made once. */
export function integerValue(value: number): HclValue {
  const made = smallIntegers[value] ?? numberValue(fromInteger(value));
  if (value >= 0 && value < maxSmall) smallIntegers[value] = made;
  return made;
}

const maxSmall = 1024;
const smallIntegers: HclValue[] = [];
export const boolValue = (isTrue: boolean): HclValue => ({ kind: "bool", isTrue });
export const tupleValue = (elements: readonly HclValue[]): HclValue => ({ kind: "tuple", elements });
export const listValue = (element: Type, elements: readonly HclValue[]): HclValue => ({
  kind: "list",
  element,
  elements,
});

/** Texts are normalized, so that texts that look the same are equal. */
export const stringValue = (text: string): HclValue => ({ kind: "string", text: text.normalize("NFC") });
export const stringList = (texts: readonly string[]): HclValue =>
  listValue(stringType, texts.map(stringValue));

export function objectValue(entries: Iterable<readonly [string, HclValue]>): HclValue {
  return { kind: "object", entries: sorted(entries) };
}

export function mapValue(element: Type, entries: Iterable<readonly [string, HclValue]>): HclValue {
  return { kind: "map", element, entries: sorted(entries) };
}

function sorted(entries: Iterable<readonly [string, HclValue]>): ReadonlyMap<string, HclValue> {
  const map = new Map(entries);
  if (map.size < 2) return map;
  const keys = [...map.keys()];
  const isSorted = keys.every((key, index) => index === 0 || compareTexts(keys[index - 1] ?? "", key) < 0);
  return isSorted ? map : new Map([...map].sort(([one], [other]) => compareTexts(one, other)));
}

/** Compares texts by their characters' numbers. JavaScript's own order is another one beyond U+D7FF. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  if (!beyond.test(one) || !beyond.test(other)) return one < other ? -1 : 1;
  const [left, right] = [one, other].map((text) =>
    Array.from(text, (character) => character.codePointAt(0) ?? 0),
  );
  const index = left?.findIndex((code, at) => code !== right?.[at]) ?? -1;
  return index < 0 ? -1 : (left?.[index] ?? 0) - (right?.[index] ?? -1);
}

const beyond = /[\ud800-\uffff]/;

export function typeOf(value: HclValue): Type {
  switch (value.kind) {
    case "null":
      return value.type;
    case "string":
      return stringType;
    case "number":
      return numberType;
    case "bool":
      return boolType;
    case "list":
    case "set":
    case "map":
      return { kind: value.kind, element: value.element };
    case "tuple":
      return { kind: "tuple", elements: value.elements.map(typeOf) };
    case "object":
      return {
        kind: "object",
        attributes: new Map([...value.entries].map(([name, each]) => [name, typeOf(each)])),
      };
  }
}

export function isSequenceValue(value: HclValue): value is SequenceValue {
  return value.kind === "list" || value.kind === "set" || value.kind === "tuple";
}

export function isMappingValue(value: HclValue): value is MappingValue {
  return value.kind === "map" || value.kind === "object";
}

/** A key and a value that `for` iterates over. */
interface Element {
  key(): HclValue;
  value: HclValue;
}

/** Returns the elements of a value, or `undefined` for one that has none. */
export function elementsOf(value: HclValue): Element[] | undefined {
  if (isMappingValue(value))
    return [...value.entries].map(([key, each]) => ({ key: () => stringValue(key), value: each }));
  if (!isSequenceValue(value)) return undefined;
  // An element of a set is its own key.
  const keyAt = (index: number, each: HclValue) => (value.kind === "set" ? each : integerValue(index));
  return value.elements.map((each, index) => ({ key: () => keyAt(index, each), value: each }));
}

/** Returns the types of values, each once. */
export function distinctTypes(values: Iterable<HclValue>): Type[] {
  return [...new Map([...values].map((each) => typeOf(each)).map((type) => [typeKey(type), type])).values()];
}
