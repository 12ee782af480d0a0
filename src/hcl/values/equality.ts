import { compare } from "./big-float.ts";
import { numberText } from "./big-float-text.ts";
import { isSameType, type Type } from "./types.ts";
import { compareTexts, type HclValue, type MappingValue, type SequenceValue, typeOf } from "./value.ts";

/** True for values that are equal and of the same type: `1` is not `"1"`, and a list is not a tuple. */
export function isEqual(one: HclValue, other: HclValue): boolean {
  if (one.kind === "null" || other.kind === "null") return one.kind === other.kind;
  if (one.kind !== other.kind) return false;
  switch (one.kind) {
    case "string":
      return one.text === (other as typeof one).text;
    case "bool":
      return one.isTrue === (other as typeof one).isTrue;
    case "number":
      // Compared as texts: numbers that are printed alike are equal, whatever their precision.
      return numberText(one.number) === numberText((other as typeof one).number);
    case "list":
    case "set":
    case "tuple":
      return isSameType(typeOf(one), typeOf(other)) && hasEqualElements(one, other as SequenceValue);
    case "map":
    case "object":
      return isSameType(typeOf(one), typeOf(other)) && hasEqualEntries(one, other as MappingValue);
  }
}

function hasEqualElements({ elements }: SequenceValue, other: SequenceValue): boolean {
  return (
    elements.length === other.elements.length &&
    elements.every((each, index) => {
      const its = other.elements[index];
      return its !== undefined && isEqual(each, its);
    })
  );
}

function hasEqualEntries({ entries }: MappingValue, other: MappingValue): boolean {
  return (
    entries.size === other.entries.size &&
    entries.entries().every(([key, each]) => {
      const its = other.entries.get(key);
      return its !== undefined && isEqual(each, its);
    })
  );
}

/** Returns a set of the elements: each once, sorted. */
export function setValue(element: Type, elements: Iterable<HclValue>): HclValue {
  const byKey = new Map([...elements].map((each) => [sortKey(each), each]));
  const sorted = [...byKey].sort(([oneKey, one], [otherKey, other]) => {
    if (one.kind === "null" || other.kind === "null")
      return Number(one.kind === "null") - Number(other.kind === "null");
    if (one.kind === "string" && other.kind === "string") return compareTexts(one.text, other.text);
    if (one.kind === "number" && other.kind === "number") return compare(one.number, other.number);
    if (one.kind === "bool" && other.kind === "bool") return Number(one.isTrue) - Number(other.isTrue);
    return compareTexts(oneKey, otherKey);
  });
  return { kind: "set", element, elements: sorted.map(([, each]) => each) };
}

/** Returns a text that only equal values of one type share, and by which sets of other values than texts and numbers are sorted. */
function sortKey(value: HclValue): string {
  switch (value.kind) {
    case "null":
      return "~";
    case "string":
      return JSON.stringify(value.text);
    case "number":
      return numberText(value.number);
    case "bool":
      return value.isTrue ? "T" : "F";
    case "list":
    case "set":
      return `[${value.elements.map((each) => `${sortKey(each)};`).join("")}]`;
    case "tuple":
      return `<${value.elements.map((each) => `${sortKey(each)};`).join("")}>`;
    case "map":
      return `{${[...value.entries].map(([key, each]) => `${JSON.stringify(key)}:${sortKey(each)};`).join("")}}`;
    case "object":
      return `<${[...value.entries.values()].map((each) => `${sortKey(each)};`).join("")}>`;
  }
}
