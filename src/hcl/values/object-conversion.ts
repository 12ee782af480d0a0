import { HclError } from "../hcl-error.ts";
import { partConversion } from "./collection-conversion.ts";
import type { Conversion, Converter } from "./converter.ts";
import { mismatch } from "./mismatch.ts";
import { type ObjectType, type Type, withoutOptional } from "./types.ts";
import {
  type HclValue,
  isMappingValue,
  isSequenceValue,
  nullOf,
  objectValue,
  tupleValue,
  typeOf,
} from "./value.ts";

/** Returns the conversion to an object or a tuple, if there is one. */
export function objectConversion(
  from: Type,
  to: Type,
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  if (from.kind === "tuple" && to.kind === "tuple")
    return betweenTuples(from.elements, to.elements, isUnsafe, converter);
  if (to.kind !== "object") return undefined;
  if (from.kind === "object") return betweenObjects(from, to, isUnsafe, converter);
  return from.kind === "map" && isUnsafe ? fromMap(from.element, to, converter) : undefined;
}

function betweenTuples(
  from: readonly Type[],
  to: readonly Type[],
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  if (from.length !== to.length) return undefined;
  const conversions = to.map((each, index) => partConversion(from[index] ?? each, each, isUnsafe, converter));
  if (conversions.includes(undefined)) return undefined;
  return (value) =>
    tupleValue(
      isSequenceValue(value) ? value.elements.map((each, index) => conversions[index]?.(each) ?? each) : [],
    );
}

function betweenObjects(
  from: ObjectType,
  to: ObjectType,
  isUnsafe: boolean,
  converter: Converter,
): Conversion | undefined {
  const conversions = new Map<string, Conversion>();
  for (const [name, type] of to.attributes) {
    const own = from.attributes.get(name);
    if (own === undefined && to.optional?.has(name)) continue;
    const conversion = own === undefined ? undefined : partConversion(own, type, isUnsafe, converter);
    if (conversion === undefined) return undefined;
    conversions.set(name, conversion);
  }
  return (value) => {
    const given = isMappingValue(value) ? value.entries : new Map<string, HclValue>();
    return objectValue(
      [...to.attributes].map(([name, type]): [string, HclValue] => {
        const own = given.get(name);
        return [
          name,
          own === undefined ? nullOf(withoutOptional(type)) : (conversions.get(name)?.(own) ?? own),
        ];
      }),
    );
  };
}

function fromMap(element: Type, to: ObjectType, converter: Converter): Conversion | undefined {
  const conversions = new Map(
    [...to.attributes].map(([name, type]) => [name, partConversion(element, type, true, converter)]),
  );
  const isPossible = conversions
    .entries()
    .every(([name, each]) => each !== undefined || to.optional?.has(name));
  if (!isPossible) return undefined;
  return (value) => {
    const given = isMappingValue(value) ? value.entries : new Map<string, HclValue>();
    return objectValue(
      [...to.attributes].map(([name, type]): [string, HclValue] => {
        const own = given.get(name);
        const conversion = conversions.get(name);
        if (own !== undefined && conversion !== undefined) return [name, conversion(own)];
        if (own !== undefined)
          throw new HclError(
            `map element type is incompatible with attribute ${JSON.stringify(name)}: ${mismatch(typeOf(own), type, converter.conversionOf)}`,
          );
        if (to.optional?.has(name)) return [name, nullOf(withoutOptional(type))];
        throw new HclError(`map has no element for required attribute ${JSON.stringify(name)}`);
      }),
    );
  };
}
