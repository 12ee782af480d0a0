/** How Go's templates compare values. */
import { CallError } from "./call-error.ts";
import { GoMap, GoNil, GoStruct, GoText, type GoValue, goTypeOf } from "./values.ts";

type Kind = "nil" | "bool" | "int" | "float" | "string";

/** True if the values are equal. Throws for values of kinds that cannot be compared. */
export function equalInGo(one: GoValue, other: GoValue): boolean {
  const [kind, otherKind] = [kindOf(one), kindOf(other)];
  if (kind === "nil" || otherKind === "nil") return kind === otherKind;
  if (kind !== otherKind) throw incompatible(one, other);
  return plain(one) === plain(other);
}

/** True if the first value is less. Throws for values that have no order. */
export function lessInGo(one: GoValue, other: GoValue): boolean {
  const [kind, otherKind] = [kindOf(one), kindOf(other)];
  if (kind === "nil" || kind === "bool") throw new CallError("invalid type for comparison");
  if (kind !== otherKind) throw incompatible(one, other);
  const [left, right] = [plain(one), plain(other)];
  if (typeof left === "string" && typeof right === "string")
    return Buffer.compare(Buffer.from(left), Buffer.from(right)) < 0;
  return (left as bigint) < (right as bigint);
}

function incompatible(one: GoValue, other: GoValue): CallError {
  return new CallError(`incompatible types for comparison: ${goTypeOf(one)} and ${goTypeOf(other)}`);
}

function plain(value: GoValue): GoValue {
  return value instanceof GoText ? value.text : value;
}

function kindOf(value: GoValue): Kind {
  const text = plain(value);
  if (text === null || (text instanceof GoNil && text.kind === "pointer")) return "nil";
  if (typeof text === "boolean") return "bool";
  if (typeof text === "bigint") return "int";
  if (typeof text === "number") return "float";
  if (typeof text === "string") return "string";
  if (Array.isArray(text) || text instanceof GoMap || text instanceof GoNil || text instanceof GoStruct)
    throw new CallError("non-comparable type");
  return "string";
}
