/** Types as they are written: `string`, `list(number)`, `object({ name = string })`. */

import { nearest } from "../../suggest.ts";
import { HclError } from "../hcl-error.ts";
import { parseExpressionText } from "../syntax/parse-expression.ts";
import { type Expression, keywordOf } from "../syntax/tree.ts";
import { boolType, dynamicType, numberType, stringType, type Type, tupleOf } from "../values/types.ts";

const primitives: Readonly<Record<string, Type>> = {
  string: stringType,
  number: numberType,
  bool: boolType,
  any: dynamicType,
};
const constructors = ["list", "set", "map", "tuple", "object"];

/** Returns the type that an expression names. */
export function typeNamed(given: Expression): Type {
  const expression = given.kind === "json text" ? inText(given) : given;
  const keyword = keywordOf(expression);
  if (keyword !== undefined) {
    const type = Object.hasOwn(primitives, keyword) ? primitives[keyword] : undefined;
    if (type !== undefined) return type;
    const meant = nearest(keyword, [...Object.keys(primitives), ...constructors]);
    throw new HclError(
      constructors.includes(keyword)
        ? `the type ${keyword} needs what is in it`
        : `there is no type ${keyword}`,
      given.range,
      constructors.includes(keyword) ? exampleOf(keyword) : meant && `Did you mean ${meant}?`,
    );
  }
  if (expression.kind !== "call")
    throw new HclError(
      "a type is required here",
      given.range,
      "As in string, number, bool, any or list(string).",
    );
  return constructed(expression);
}

function inText({ text, range }: Extract<Expression, { kind: "json text" }>): Expression {
  return parseExpressionText({ name: range.source.name, text, within: range });
}

function exampleOf(name: string): string {
  if (name === "tuple") return "As in tuple([string, number]).";
  return name === "object" ? "As in object({ name = string })." : `As in ${name}(string).`;
}

function constructed({
  name,
  arguments: parts,
  range,
  nameRange,
}: Extract<Expression, { kind: "call" }>): Type {
  if (!constructors.includes(name)) {
    const meant = nearest(name, constructors);
    throw new HclError(`there is no type ${name}(...)`, nameRange, meant && `Did you mean ${meant}?`);
  }
  const [part, ...others] = parts;
  if (part === undefined || others.length > 0)
    throw new HclError(`the type ${name} needs one argument`, range, exampleOf(name));
  if (name === "list" || name === "set" || name === "map") return { kind: name, element: typeNamed(part) };
  if (name === "tuple") {
    if (part.kind !== "tuple") throw new HclError("a list of types is required", part.range, exampleOf(name));
    return tupleOf(part.elements.map(typeNamed));
  }
  if (part.kind !== "object")
    throw new HclError("the attributes with their types are required", part.range, exampleOf(name));
  const attributes = new Map<string, Type>();
  const optional = new Set<string>();
  for (const { key, value } of part.entries) {
    const attribute = keywordOf(key);
    if (attribute === undefined || attributes.has(attribute))
      throw new HclError(
        attribute === undefined ? "the name of an attribute is required" : `${attribute} is named twice`,
        key.range,
      );
    const [inner] = value.kind === "call" && value.name === "optional" ? value.arguments : [];
    if (inner !== undefined) optional.add(attribute);
    attributes.set(attribute, typeNamed(inner ?? value));
  }
  const sorted = new Map([...attributes].sort(([one], [other]) => (one < other ? -1 : 1)));
  return { kind: "object", attributes: sorted, optional };
}
