import { parseGoBoolean } from "../../../go/boolean.ts";
import { HclError } from "../../../hcl/hcl-error.ts";
import { fromDouble } from "../../../hcl/values/big-float.ts";
import { parseNumber } from "../../../hcl/values/big-float-text.ts";
import { setValue } from "../../../hcl/values/equality.ts";
import { parseJsonText, typedValueOfJson } from "../../../hcl/values/json-text.ts";
import { constraintName, isPrimitive, type Type, typeName } from "../../../hcl/values/types.ts";
import {
  boolValue,
  type HclValue,
  listValue,
  mapValue,
  numberValue,
  stringValue,
  tupleValue,
  typeOf,
} from "../../../hcl/values/value.ts";
import { splitCsv } from "../../command-line/option-values.ts";

/** Converts the text that the environment has for a variable to the variable's type or, without one, to the type of its default. */
export function valueOfText(
  name: string,
  { text, isJson }: { text: string; isJson: boolean },
  { type, fallback }: { type: Type | undefined; fallback: HclValue | undefined },
): HclValue {
  if (type !== undefined && isJson) {
    try {
      return typedValueOfJson(parseJsonText(text), type);
    } catch (error) {
      if (error instanceof HclError) throw new HclError(`invalid JSON in ${name}_JSON: ${error.message}`);
      throw error;
    }
  }
  const wanted =
    type ??
    (fallback === undefined || fallback.kind === "null" ? { kind: "string" as const } : typeOf(fallback));
  if (isPrimitive(wanted)) return primitiveOf(name, text, wanted);
  if (type !== undefined && wanted.kind !== "object" && wanted.kind !== "dynamic")
    return collectionOf(name, text, wanted);
  throw new HclError(
    `${name} is set in the environment, but its ${type === undefined ? "default" : "type"} is ${constraintName(wanted)}`,
    undefined,
    type === undefined
      ? "With a type, as in type = list(string), a list can be given, separated by commas."
      : `${name}_JSON gives it as JSON.`,
  );
}

function primitiveOf(name: string, text: string, type: Type): HclValue {
  if (type.kind === "bool") {
    const value = parseGoBoolean(text);
    if (value === undefined) throw new HclError(`${name} must be true or false, not ${JSON.stringify(text)}`);
    return boolValue(value);
  }
  if (type.kind !== "number") return stringValue(text);
  // An integer stays as it is written, however large; buildx rounds it to a double.
  const number = parseNumber(text);
  const value =
    number?.mantissa === undefined ? undefined : /^[+-]?\d+$/.test(text) ? number : fromDouble(Number(text));
  if (value === undefined) throw new HclError(`${name} must be a number, not ${JSON.stringify(text)}`);
  return numberValue(value);
}

/** Reads a list, a set, a tuple or a map of texts, numbers or booleans: `a,b` or `key:a,key2:b`. */
function collectionOf(name: string, text: string, type: Type): HclValue {
  const fields = splitCsv(text);
  const element = (part: string, own: Type) => {
    if (isPrimitive(own)) return primitiveOf(name, part, own);
    throw new HclError(
      `${name} is set in the environment, but its type is ${typeName(type)}`,
      undefined,
      `${name}_JSON gives it as JSON.`,
    );
  };
  switch (type.kind) {
    case "list":
      return listValue(
        type.element,
        fields.map((field) => element(field, type.element)),
      );
    case "set":
      return setValue(
        type.element,
        fields.map((field) => element(field, type.element)),
      );
    case "tuple":
      if (fields.length !== type.elements.length)
        throw new HclError(
          `${name} must have ${type.elements.length} elements, separated by commas, not ${fields.length}`,
        );
      return tupleValue(type.elements.map((each, index) => element(fields[index] ?? "", each)));
    case "map":
      return mapValue(
        type.element,
        fields.map((field): [string, HclValue] => {
          const [key, value, ...others] = field.split(":");
          if (key === undefined || value === undefined || others.length > 0)
            throw new HclError(`${name} must have the form KEY:VALUE,KEY:VALUE, not ${JSON.stringify(text)}`);
          return [key, element(value, type.element)];
        }),
      );
    default:
      throw new HclError(`${name} can't be set in the environment`);
  }
}
