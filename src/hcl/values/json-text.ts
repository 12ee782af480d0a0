/** Values as JSON texts, and back. */
import { HclError } from "../hcl-error.ts";
import { numberText, parseNumber } from "./big-float-text.ts";
import { convert } from "./conversion.ts";
import { setValue } from "./equality.ts";
import { boolType, dynamicType, isCollection, numberType, stringType, type Type, typeName } from "./types.ts";
import {
  boolValue,
  type HclValue,
  isMappingValue,
  isSequenceValue,
  listValue,
  mapValue,
  nullOf,
  nullValue,
  numberValue,
  objectValue,
  stringValue,
  tupleValue,
  typeOf,
} from "./value.ts";

/** Writes a value as JSON, as Go does: keys sorted, and `<`, `>` and `&` escaped. */
export function jsonTextOf(value: HclValue): string {
  switch (value.kind) {
    case "null":
      return "null";
    case "string":
      return quotedJson(value.text);
    case "number":
      if (value.number.mantissa === undefined) throw new HclError("cannot serialize infinity as JSON");
      return numberText(value.number);
    case "bool":
      return String(value.isTrue);
    case "list":
    case "set":
    case "tuple":
      return `[${value.elements.map(jsonTextOf).join()}]`;
    case "map":
    case "object":
      return `{${[...value.entries].map(([key, each]) => `${quotedJson(key)}:${jsonTextOf(each)}`).join()}}`;
  }
}

/** Writes a value of a type with `any` in it. Such parts are written together with their own types. */
export function jsonTextOfType(value: HclValue, type: Type): string {
  if (type.kind === "dynamic" && !(value.kind === "null" && value.type.kind === "dynamic"))
    return `{"value":${jsonTextOf(value)},"type":${typeText(typeOf(value))}}`;
  if (isSequenceValue(value)) {
    const typeAt = (index: number) => (type.kind === "tuple" ? type.elements[index] : elementOf(type));
    return `[${value.elements.map((each, index) => jsonTextOfType(each, typeAt(index) ?? typeOf(each))).join()}]`;
  }
  if (isMappingValue(value)) {
    const typeOfKey = (key: string) => (type.kind === "object" ? type.attributes.get(key) : elementOf(type));
    const entries = [...value.entries].map(
      ([key, each]) => `${quotedJson(key)}:${jsonTextOfType(each, typeOfKey(key) ?? typeOf(each))}`,
    );
    return `{${entries.join()}}`;
  }
  return jsonTextOf(value);
}

function elementOf(type: Type): Type | undefined {
  return isCollection(type) ? type.element : undefined;
}

function typeText(type: Type): string {
  if (isCollection(type)) return `["${type.kind}",${typeText(type.element)}]`;
  if (type.kind === "tuple") return `["tuple",[${type.elements.map(typeText).join()}]]`;
  if (type.kind === "object")
    return `["object",{${[...type.attributes].map(([name, each]) => `${quotedJson(name)}:${typeText(each)}`).join()}}]`;
  return quotedJson(type.kind);
}

export function quotedJson(text: string): string {
  return JSON.stringify(text).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** JSON as it is read: numbers as they are written, since doubles would round them. */
export type JsonNode = null | boolean | string | { number: string } | JsonNode[] | Map<string, JsonNode>;

const maxDepth = 250;
const token =
  /[ \t\r\n]*(?:(?<mark>[{}[\],:])|(?<text>"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(?<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<word>true|false|null)(?![a-zA-Z])|(?<end>$))/y;

/** Parses JSON. Throws for a text that is none. */
export function parseJsonText(text: string): JsonNode {
  let at = 0;
  const next = (): Record<string, string | undefined> => {
    token.lastIndex = at;
    const match = token.exec(text);
    if (match === null) throw new HclError(`invalid character in JSON at offset ${at}`);
    at = token.lastIndex;
    return match.groups ?? {};
  };
  const value = (first: Record<string, string | undefined>, depth: number): JsonNode => {
    if (depth > maxDepth) throw new HclError("the JSON is nested too deeply");
    if (first.text !== undefined) return JSON.parse(first.text);
    if (first.number !== undefined) return { number: first.number };
    if (first.word !== undefined) return first.word === "null" ? null : first.word === "true";
    if (first.mark === "[") return list(depth);
    if (first.mark === "{") return map(depth);
    throw new HclError(
      first.end === undefined ? `unexpected ${first.mark} in JSON` : "unexpected end of JSON",
    );
  };
  const list = (depth: number): JsonNode[] => {
    const elements: JsonNode[] = [];
    for (let first = next(); first.mark !== "]" || elements.length > 0; first = next()) {
      elements.push(value(first, depth + 1));
      const { mark } = next();
      if (mark === "]") break;
      if (mark !== ",") throw new HclError("a comma is required between elements of a JSON array");
    }
    return elements;
  };
  const map = (depth: number): Map<string, JsonNode> => {
    const entries = new Map<string, JsonNode>();
    for (let first = next(); first.mark !== "}" || entries.size > 0; first = next()) {
      if (first.text === undefined) throw new HclError("a key of a JSON object is required");
      if (next().mark !== ":") throw new HclError("a colon is required after a key of a JSON object");
      entries.set(JSON.parse(first.text), value(next(), depth + 1));
      const { mark } = next();
      if (mark === "}") break;
      if (mark !== ",") throw new HclError("a comma is required between entries of a JSON object");
    }
    return entries;
  };
  const parsed = value(next(), 0);
  if (next().end === undefined) throw new HclError("extraneous data after JSON object");
  return parsed;
}

/** Returns the value of JSON, with the types that it has by itself. */
export function valueOfJson(json: JsonNode): HclValue {
  if (json === null) return nullValue;
  if (typeof json === "string") return stringValue(json);
  if (typeof json === "boolean") return boolValue(json);
  if (Array.isArray(json)) return tupleValue(json.map(valueOfJson));
  if (json instanceof Map) return objectValue([...json].map(([key, each]) => [key, valueOfJson(each)]));
  return numberValue(parseNumber(json.number) ?? typeRequired(numberType));
}

/** Returns the value of JSON as one of a type. Throws if it has another one. */
export function typedValueOfJson(json: JsonNode, type: Type): HclValue {
  if (json === null) return nullOf(type);
  switch (type.kind) {
    case "dynamic":
      return typeRequired(dynamicType);
    case "string":
    case "number":
    case "bool":
      return primitiveOf(json, type);
    case "list":
    case "set": {
      const elements = arrayOf(json, type).map((each) => typedValueOfJson(each, type.element));
      return type.kind === "set" ? setValue(type.element, elements) : listValue(type.element, elements);
    }
    case "tuple": {
      const elements = arrayOf(json, type);
      if (elements.length !== type.elements.length)
        throw new HclError(
          `${elements.length < type.elements.length ? "not enough" : "too many"} tuple elements (need ${type.elements.length})`,
        );
      return tupleValue(
        elements.map((each, index) => typedValueOfJson(each, type.elements[index] ?? dynamicType)),
      );
    }
    case "map":
      return mapValue(
        type.element,
        [...entriesOf(json, type)].map(([key, each]) => [key, typedValueOfJson(each, type.element)]),
      );
    case "object": {
      const given = entriesOf(json, type);
      const unknown = given.keys().find((key) => !type.attributes.has(key));
      if (unknown !== undefined) throw new HclError(`unsupported attribute ${JSON.stringify(unknown)}`);
      return objectValue(
        [...type.attributes].map(([name, each]) => [name, typedValueOfJson(given.get(name) ?? null, each)]),
      );
    }
    case "bytes":
      return typeRequired(type);
  }
}

function primitiveOf(json: JsonNode, type: Type): HclValue {
  const value = valueOfJson(json);
  const isNumber = value.kind === "number";
  if (type.kind === "bool" ? isNumber : type.kind === "number" && value.kind === "bool")
    return typeRequired(type);
  if (isSequenceValue(value) || value.kind === "object") return typeRequired(type);
  // A number stays as it is written.
  if (type.kind === "string" && isNumber && typeof json === "object" && json !== null && "number" in json)
    return stringValue(json.number);
  return convert(value, type.kind === "bool" ? boolType : type.kind === "number" ? numberType : stringType);
}

function arrayOf(json: JsonNode, type: Type): JsonNode[] {
  return Array.isArray(json) ? json : typeRequired(type);
}

function entriesOf(json: JsonNode, type: Type): Map<string, JsonNode> {
  return json instanceof Map ? json : typeRequired(type);
}

function typeRequired(type: Type): never {
  throw new HclError(`${typeName(type)} is required`);
}
