/** The types of values, as HCL has them: a list has one type of elements, a tuple one for each; a map and an object likewise. */
export type Type =
  | { kind: "string" | "number" | "bool" }
  /** The type of a `null` without a known type. As a wanted type: any. */
  | { kind: "dynamic" }
  | { kind: "list" | "set" | "map"; element: Type }
  | { kind: "tuple"; elements: readonly Type[] }
  | { kind: "object"; attributes: ReadonlyMap<string, Type>; optional?: ReadonlySet<string> }
  /** Bytes, which no expression makes. */
  | { kind: "bytes" };

type CollectionType = Extract<Type, { element: Type }>;
export type TupleType = Extract<Type, { kind: "tuple" }>;
export type ObjectType = Extract<Type, { kind: "object" }>;

export const stringType: Type = { kind: "string" };
export const numberType: Type = { kind: "number" };
export const boolType: Type = { kind: "bool" };
export const dynamicType: Type = { kind: "dynamic" };
export const listOf = (element: Type): Type => ({ kind: "list", element });
export const setOf = (element: Type): Type => ({ kind: "set", element });
export const mapOf = (element: Type): Type => ({ kind: "map", element });
export const tupleOf = (elements: readonly Type[]): Type => ({ kind: "tuple", elements });

export function isPrimitive({ kind }: Type): boolean {
  return kind === "string" || kind === "number" || kind === "bool";
}

export function isCollection(type: Type): type is CollectionType {
  return type.kind === "list" || type.kind === "set" || type.kind === "map";
}

/** Returns a text that only equal types share. Which attributes are optional does not matter. */
export function typeKey(type: Type): string {
  switch (type.kind) {
    case "list":
    case "set":
    case "map":
      return `${type.kind}(${typeKey(type.element)})`;
    case "tuple":
      return `tuple(${type.elements.map(typeKey).join()})`;
    case "object":
      return `object(${[...type.attributes].map(([name, each]) => `${JSON.stringify(name)}:${typeKey(each)}`).join()})`;
    default:
      return type.kind;
  }
}

export function isSameType(one: Type, other: Type): boolean {
  if (one === other) return true;
  if (one.kind !== other.kind) return false;
  if (isCollection(one) && isCollection(other)) return isSameType(one.element, other.element);
  if (one.kind === "tuple" && other.kind === "tuple")
    return (
      one.elements.length === other.elements.length &&
      one.elements.every((each, index) => isSameType(each, other.elements[index] ?? dynamicType))
    );
  if (one.kind === "object" && other.kind === "object")
    return (
      one.attributes.size === other.attributes.size &&
      one.attributes.entries().every(([name, each]) => {
        const its = other.attributes.get(name);
        return its !== undefined && isSameType(each, its);
      })
    );
  return true;
}

/** Returns the type with all attributes required, as values have it. */
export function withoutOptional(type: Type): Type {
  if (isCollection(type)) return { kind: type.kind, element: withoutOptional(type.element) };
  if (type.kind === "tuple") return tupleOf(type.elements.map(withoutOptional));
  if (type.kind !== "object") return type;
  return {
    kind: "object",
    attributes: new Map([...type.attributes].map(([name, each]) => [name, withoutOptional(each)])),
  };
}

/** Names a type for messages. */
export function typeName(type: Type): string {
  if (isCollection(type)) return `${type.kind} of ${typeName(type.element)}`;
  return type.kind;
}

/** Names a wanted type for messages. */
export function constraintName(type: Type): string {
  if (type.kind === "dynamic") return "any type";
  if (!isCollection(type)) return type.kind;
  const element = type.element.kind === "dynamic" ? "any single type" : constraintName(type.element);
  return `${type.kind} of ${element}`;
}
