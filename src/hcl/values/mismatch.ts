import type { Converter } from "./converter.ts";
import {
  constraintName,
  isCollection,
  isPrimitive,
  isSameType,
  type ObjectType,
  type Type,
} from "./types.ts";

type ConversionOf = Converter["conversionOf"];

/** Returns why a type can't be converted to another one: what is required and, where it helps, what was given. */
export function mismatch(from: Type, to: Type, conversionOf: ConversionOf): string {
  if (from.kind === "object" && to.kind === "object") return betweenObjects(from, to, conversionOf);
  const isStructure = from.kind === "tuple" || from.kind === "object";
  if (isStructure && isCollection(to) && (to.kind === "map") === (from.kind === "object")) {
    if (to.element.kind === "dynamic") return `all ${to.kind} elements must have the same type`;
    const parts =
      from.kind === "tuple"
        ? from.elements.map((type, index) => ({ name: String(index), type }))
        : [...from.attributes].map(([name, type]) => ({ name: JSON.stringify(name), type }));
    const wrong = parts.find(({ type }) => !isConvertible(type, to.element, conversionOf));
    return wrong === undefined
      ? `all elements must be ${constraintName(to.element)}`
      : `element ${wrong.name}: ${mismatch(wrong.type, to.element, conversionOf)}`;
  }
  if (isCollection(from) && isCollection(to)) {
    const isAlike = to.kind === "map" ? from.kind === "map" : from.kind !== "map";
    if (isAlike)
      return `incorrect ${to.kind} element type: ${mismatch(from.element, to.element, conversionOf)}`;
  }
  return isConfusing(from, to)
    ? `${constraintName(to)} required`
    : `${constraintName(to)} required, but have ${constraintName(from)}`;
}

function betweenObjects(from: ObjectType, to: ObjectType, conversionOf: ConversionOf): string {
  const missing = [...to.attributes.keys()]
    .filter((name) => !from.attributes.has(name) && !to.optional?.has(name))
    .map((name) => JSON.stringify(name));
  if (missing.length === 1) return `attribute ${missing[0]} is required`;
  if (missing.length > 1)
    return `attributes ${missing.slice(0, -1).join(", ")}${missing.length > 2 ? "," : ""} and ${missing.at(-1)} are required`;
  for (const [name, type] of to.attributes) {
    const own = from.attributes.get(name);
    if (own !== undefined && !isConvertible(own, type, conversionOf))
      return `attribute ${JSON.stringify(name)}: ${mismatch(own, type, conversionOf)}`;
  }
  return "incorrect object attributes";
}

function isConvertible(from: Type, to: Type, conversionOf: ConversionOf): boolean {
  return isSameType(from, to) || conversionOf(from, to, true) !== undefined;
}

/** True where naming both types would mislead: a text can be converted to a number, so its content is wrong, not its type. */
function isConfusing(from: Type, to: Type): boolean {
  return isPrimitive(to) && to.kind !== "string" && from.kind === "string";
}
