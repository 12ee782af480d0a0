import type { Conversion, Converter, Unified } from "./converter.ts";
import { preferredOrder } from "./type-order.ts";
import {
  isCollection,
  isSameType,
  listOf,
  mapOf,
  type ObjectType,
  type TupleType,
  type Type,
  tupleOf,
  typeKey,
} from "./types.ts";

/** Returns a type to which all types can be converted, if there is one. */
export function unifyTypes(
  types: readonly Type[],
  isUnsafe: boolean,
  converter: Converter,
): Unified | undefined {
  // Equal types are unified once: the elements of a long list mostly have one type.
  const distinct = [...new Map(types.map((type) => [typeKey(type), type])).values()];
  if (distinct.length === types.length) return unifyDistinct(types, isUnsafe, converter);
  const unified = unifyDistinct(distinct, isUnsafe, converter);
  if (unified === undefined) return undefined;
  const byKey = new Map(distinct.map((type, index) => [typeKey(type), unified.conversions[index]]));
  return { type: unified.type, conversions: types.map((type) => byKey.get(typeKey(type))) };
}

function unifyDistinct(types: readonly Type[], isUnsafe: boolean, converter: Converter): Unified | undefined {
  if (types.length === 0) return undefined;
  const kinds = new Set(types.map(({ kind }) => kind));
  const hasDynamic = kinds.delete("dynamic");
  const isOnly = (...names: Type["kind"][]) =>
    kinds.size > 0 && kinds.values().every((kind) => names.includes(kind));
  if (isOnly("map") || isOnly("list") || isOnly("set")) return unifyCollections(types, isUnsafe, converter);
  if (isOnly("map", "object") && kinds.has("map")) {
    const unified = asCollection(types, "object", "map", isUnsafe, converter);
    if (unified !== undefined) return unified;
  } else if (isOnly("list", "tuple") && kinds.has("list")) {
    const unified = asCollection(types, "tuple", "list", isUnsafe, converter);
    if (unified !== undefined) return unified;
  } else if (isOnly("object")) {
    return hasDynamic ? unknownOf(types) : unifyObjects(types as readonly ObjectType[], isUnsafe, converter);
  } else if (isOnly("tuple")) {
    return hasDynamic ? unknownOf(types) : unifyTuples(types as readonly TupleType[], isUnsafe, converter);
  } else if (kinds.has("object") && kinds.has("tuple")) return undefined;
  for (const index of preferredOrder(types)) {
    const type = types[index];
    const unified = type === undefined ? undefined : towards(type, types, isUnsafe, converter);
    if (unified !== undefined) return unified;
  }
  return undefined;
}

/** Returns the conversions of all types to one, if there are. */
function towards(
  type: Type,
  types: readonly Type[],
  isUnsafe: boolean,
  { conversionOf }: Converter,
): Unified | undefined {
  const conversions: (Conversion | undefined)[] = [];
  for (const each of types) {
    if (isSameType(each, type)) conversions.push(undefined);
    else {
      const conversion = conversionOf(each, type, isUnsafe);
      if (conversion === undefined) return undefined;
      conversions.push(conversion);
    }
  }
  return { type, conversions };
}

/** Beside a null whose type is not told, each value stays as it is. */
function unknownOf(types: readonly Type[]): Unified {
  return { type: { kind: "dynamic" }, conversions: types.map(() => undefined) };
}

function unifyCollections(
  types: readonly Type[],
  isUnsafe: boolean,
  converter: Converter,
): Unified | undefined {
  if (types.some(({ kind }) => kind === "dynamic")) return unknownOf(types);
  const collections = types.filter(isCollection);
  const [first] = collections;
  const element = converter.unify(
    collections.map((each) => each.element),
    isUnsafe,
  )?.type;
  if (first === undefined || element === undefined) return undefined;
  return towards({ kind: first.kind, element }, types, isUnsafe, converter);
}

/** Unifies objects with maps, or tuples with lists: as if all of them were collections. */
function asCollection(
  types: readonly Type[],
  structure: "object" | "tuple",
  kind: "map" | "list",
  isUnsafe: boolean,
  converter: Converter,
): Unified | undefined {
  const parts = types.filter((type) => type.kind === structure).flatMap(partsOf);
  const element = converter.unify(parts, isUnsafe)?.type;
  if (element === undefined) return undefined;
  const collection: Type = { kind, element };
  const listed = types.map((type) => (type.kind === structure ? collection : type));
  const unified = converter.unify(listed, isUnsafe);
  if (unified === undefined || unified.type.kind !== kind) return undefined;
  return towards(unified.type, types, isUnsafe, converter);
}

function partsOf(type: Type): readonly Type[] {
  if (type.kind === "tuple") return type.elements;
  return type.kind === "object" ? [...type.attributes.values()] : [];
}

function unifyObjects(
  types: readonly ObjectType[],
  isUnsafe: boolean,
  converter: Converter,
): Unified | undefined {
  const asMap = () => {
    const element = converter.unify(types.flatMap(partsOf), isUnsafe)?.type;
    return element === undefined ? undefined : towards(mapOf(element), types, isUnsafe, converter);
  };
  const [first] = types;
  if (first === undefined) return undefined;
  const names = [...first.attributes.keys()];
  if (
    types.some(
      ({ attributes }) => attributes.size !== names.length || names.some((name) => !attributes.has(name)),
    )
  )
    return asMap();
  const attributes = new Map<string, Type>();
  for (const name of names) {
    const across = types.flatMap((type) => type.attributes.get(name) ?? []);
    const type = converter.unify(across, isUnsafe)?.type;
    if (type === undefined) return undefined;
    attributes.set(name, type);
  }
  return towards({ kind: "object", attributes }, types, isUnsafe, converter) ?? asMap();
}

function unifyTuples(
  types: readonly TupleType[],
  isUnsafe: boolean,
  converter: Converter,
): Unified | undefined {
  const asList = () => {
    const element = converter.unify(types.flatMap(partsOf), isUnsafe)?.type;
    return element === undefined ? undefined : towards(listOf(element), types, isUnsafe, converter);
  };
  const length = types[0]?.elements.length ?? 0;
  if (types.some(({ elements }) => elements.length !== length)) return asList();
  const elements: Type[] = [];
  for (let index = 0; index < length; index++) {
    const across = types.flatMap((type) => type.elements[index] ?? []);
    const type = converter.unify(across, isUnsafe)?.type;
    if (type === undefined) return undefined;
    elements.push(type);
  }
  return towards(tupleOf(elements), types, isUnsafe, converter) ?? asList();
}
