import { HclError } from "../hcl-error.ts";
import type { Conversion, Converter } from "./converter.ts";
import { setValue } from "./equality.ts";
import { dynamicType, isSameType, type Type, withoutOptional } from "./types.ts";
import {
  distinctTypes,
  type HclValue,
  isMappingValue,
  isSequenceValue,
  listValue,
  mapValue,
  typeOf,
} from "./value.ts";

/** Returns the conversion to a list, a set or a map, if there is one. */
export function collectionConversion(
  from: Type,
  to: Type,
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  switch (to.kind) {
    case "list":
    case "set":
      return from.kind === "tuple"
        ? fromTuple(from.elements, to, isUnsafe, converter)
        : fromSequence(from, to, isUnsafe, converter);
    case "map":
      return toMap(from, to.element, isUnsafe, converter);
    default:
      return undefined;
  }
}

type Sequence = Extract<Type, { kind: "list" | "set" | "map" }>;

function sequence({ kind }: Sequence, element: Type, elements: readonly HclValue[]): HclValue {
  return kind === "set" ? setValue(element, elements) : listValue(element, elements);
}

function fromSequence(
  from: Type,
  to: Sequence,
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  if (from.kind !== "list" && from.kind !== "set") return undefined;
  // A set loses the order, and elements that are equal.
  if (to.kind === "set" && from.kind === "list" && !isUnsafe) return undefined;
  const conversion = partConversion(from.element, to.element, isUnsafe, converter);
  if (conversion === undefined) return undefined;
  return (value) => {
    const elements = isSequenceValue(value) ? value.elements.map(conversion) : [];
    if (elements.length > 0) return sequence(to, requireOneType(elements, to.kind), elements);
    return sequence(to, to.element.kind === "dynamic" ? from.element : withoutOptional(to.element), []);
  };
}

function fromTuple(
  from: readonly Type[],
  to: Sequence,
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  if (from.length === 0) return () => sequence(to, withoutOptional(to.element), []);
  const element = commonType(from, to.element, isUnsafe, converter);
  if (element === undefined) return undefined;
  const conversions = from.map((each) => partConversion(each, element, isUnsafe, converter));
  if (conversions.includes(undefined)) return undefined;
  return (value) => {
    const given = isSequenceValue(value) ? value.elements : [];
    const converted = given.map((each, index) => conversions[index]?.(each) ?? each);
    const elements = to.kind === "list" ? alike(converted, isUnsafe, converter) : converted;
    return sequence(to, requireOneType(elements, to.kind), elements);
  };
}

function toMap(from: Type, wanted: Type, isUnsafe: boolean, converter: Converter): Conversion | undefined {
  if (from.kind !== "map" && from.kind !== "object") return undefined;
  const types = from.kind === "object" ? [...from.attributes.values()] : [from.element];
  if (types.length === 0) return () => mapValue(withoutOptional(wanted), []);
  const element = from.kind === "map" ? wanted : commonType(types, wanted, isUnsafe, converter);
  if (element === undefined) return undefined;
  const conversions = new Map(
    (from.kind === "object" ? [...from.attributes] : [["", from.element] as const]).map(([name, each]) => [
      name,
      partConversion(each, element, isUnsafe, converter),
    ]),
  );
  if (conversions.values().some((each) => each === undefined)) return undefined;
  return (value) => {
    const entries = isMappingValue(value) ? [...value.entries] : [];
    const converted = entries.map(([name, each]): [string, HclValue] => [
      name,
      conversions.get(from.kind === "map" ? "" : name)?.(each) ?? each,
    ]);
    if (converted.length === 0)
      return mapValue(element.kind === "dynamic" ? (types[0] ?? dynamicType) : withoutOptional(element), []);
    const isNested = ["list", "set", "map", "object"].includes(element.kind);
    const values = converted.map(([, each]) => each);
    const elements = isNested ? alike(values, isUnsafe && from.kind !== "map", converter) : values;
    const type = requireOneType(elements, "map");
    return mapValue(
      type,
      converted.map(([name, each], index) => [name, elements[index] ?? each]),
    );
  };
}

/** Returns the type that elements get: the wanted one or, where any would do, one that all of them can be converted to. */
function commonType(
  types: readonly Type[],
  wanted: Type,
  isUnsafe: boolean,
  converter: Converter,
): Type | undefined {
  if (wanted.kind !== "dynamic") return wanted;
  const type = converter.unify(types, isUnsafe)?.type;
  return type?.kind === "dynamic" && types.some(({ kind }) => kind !== "dynamic") ? undefined : type;
}

/** Returns the conversion of an element or an attribute. One that has the type already stays as it is. */
export function partConversion(
  from: Type,
  to: Type,
  isUnsafe: boolean,
  { conversionOf }: Converter,
): Conversion | undefined {
  return isSameType(from, to) ? (value) => value : conversionOf(from, to, isUnsafe);
}

/** Makes values alike that were converted each by itself: where parts of the wanted type are any, they may differ. */
function alike(
  values: readonly HclValue[],
  isUnsafe: boolean,
  { unify, conversionOf }: Converter,
): readonly HclValue[] {
  const types = distinctTypes(values);
  if (types.length < 2) return values;
  const type = unify(types, isUnsafe)?.type;
  if (type === undefined) throw new HclError("cannot find a common base type for all elements");
  return values.map((each) => {
    const own = typeOf(each);
    return isSameType(own, type) ? each : (conversionOf(own, type, isUnsafe)?.(each) ?? each);
  });
}

function requireOneType(values: readonly HclValue[], kind: string): Type {
  const [type = dynamicType, ...others] = distinctTypes(values);
  if (others.length > 0) throw new HclError(`element types must all match for conversion to ${kind}`);
  return type;
}
