/** Conversions between types: https://github.com/zclconf/go-cty/blob/main/docs/convert.md. */
import { HclError } from "../hcl-error.ts";
import { numberText, parseNumber } from "./big-float-text.ts";
import { collectionConversion } from "./collection-conversion.ts";
import type { Conversion, Converter } from "./converter.ts";
import { mismatch } from "./mismatch.ts";
import { objectConversion } from "./object-conversion.ts";
import { dynamicType, isPrimitive, isSameType, type Type, withoutOptional } from "./types.ts";
import { unifyTypes } from "./unify.ts";
import { boolValue, type HclValue, nullOf, numberValue, stringValue, typeOf } from "./value.ts";

const converter: Converter = {
  conversionOf,
  unify: (types, isUnsafe) => unifyTypes(types, isUnsafe, converter),
};

export const { unify } = converter;

/** Returns the value as one of another type. Throws if it can't be. */
export function convert(value: HclValue, wanted: Type): HclValue {
  if (wanted.kind === "dynamic") return value;
  const type = typeOf(value);
  if (isSameType(type, wanted)) return value;
  const conversion = conversionOf(type, wanted, true);
  if (conversion === undefined) throw new HclError(mismatch(type, wanted, conversionOf));
  return conversion(value);
}

export function conversionOf(from: Type, to: Type, isUnsafe: boolean): Conversion | undefined {
  const conversion = conversionOfValues(from, to, isUnsafe);
  if (conversion === undefined || to.kind === "dynamic") return conversion;
  return (value) =>
    value.kind === "null" ? nullOf(withKnownParts(value.type, withoutOptional(to))) : conversion(value);
}

function conversionOfValues(from: Type, to: Type, isUnsafe: boolean): Conversion | undefined {
  if (to.kind === "dynamic") return (value) => value;
  if (from.kind === "dynamic") return isUnsafe ? (value) => convert(value, to) : undefined;
  if (isPrimitive(from) && isPrimitive(to)) return primitiveConversion(from, to, isUnsafe);
  return (
    collectionConversion(from, to, isUnsafe, converter) ?? objectConversion(from, to, isUnsafe, converter)
  );
}

function primitiveConversion(from: Type, to: Type, isUnsafe: boolean): Conversion | undefined {
  if (to.kind === "string" && from.kind !== "string") return (value) => stringValue(textOf(value));
  if (!isUnsafe || from.kind !== "string" || to.kind === "string") return undefined;
  return to.kind === "number" ? (value) => toNumber(textOf(value)) : (value) => toBool(textOf(value));
}

/** Writes a text, a number or a boolean as a text. */
export function textOf(value: HclValue): string {
  switch (value.kind) {
    case "string":
      return value.text;
    case "number":
      return numberText(value.number);
    case "bool":
      return String(value.isTrue);
    default:
      throw new HclError(mismatch(typeOf(value), { kind: "string" }, conversionOf));
  }
}

function toNumber(text: string): HclValue {
  const number = parseNumber(text);
  if (number === undefined) throw new HclError("a number is required");
  return numberValue(number);
}

function toBool(text: string): HclValue {
  if (text === "true" || text === "1") return boolValue(true);
  if (text === "false" || text === "0") return boolValue(false);
  const lower = text.toLowerCase();
  throw new HclError(
    lower === "true" || lower === "false"
      ? `a bool is required; to convert from string, use lowercase ${JSON.stringify(lower)}`
      : "a bool is required",
  );
}

/** Returns the wanted type of a null, with the parts that are not told taken from its own. */
function withKnownParts(own: Type, wanted: Type): Type {
  if (own.kind === "dynamic") return wanted;
  switch (wanted.kind) {
    case "dynamic":
      return own;
    case "list":
    case "set":
    case "map":
      return { kind: wanted.kind, element: withKnownParts(elementOf(own), wanted.element) };
    case "tuple":
      return {
        kind: "tuple",
        elements: wanted.elements.map((each, index) =>
          own.kind === "tuple" ? withKnownParts(own.elements[index] ?? dynamicType, each) : each,
        ),
      };
    case "object":
      return {
        kind: "object",
        attributes: new Map(
          [...wanted.attributes].map(([name, each]) => {
            const its = own.kind === "object" ? own.attributes.get(name) : elementOf(own);
            return [name, withKnownParts(its ?? dynamicType, each)];
          }),
        ),
      };
    default:
      return wanted;
  }
}

function elementOf(type: Type): Type {
  switch (type.kind) {
    case "list":
    case "set":
    case "map":
      return type.element;
    case "tuple":
      return unify(type.elements, true)?.type ?? dynamicType;
    case "object":
      return unify([...type.attributes.values()], true)?.type ?? dynamicType;
    default:
      return dynamicType;
  }
}
