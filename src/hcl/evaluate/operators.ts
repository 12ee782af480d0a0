import { HclError } from "../hcl-error.ts";
import type { BinaryOperator, UnaryOperator } from "../syntax/tree.ts";
import { add, type BigFloat, compare, divide, modulo, multiply, negated } from "../values/big-float.ts";
import { convert } from "../values/conversion.ts";
import { isEqual } from "../values/equality.ts";
import { boolType, numberType, type Type } from "../values/types.ts";
import { boolValue, type HclValue, numberValue } from "../values/value.ts";

const comparisons: Partial<Record<BinaryOperator, (order: number) => boolean>> = {
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

const arithmetic: Partial<Record<BinaryOperator, (one: BigFloat, other: BigFloat) => BigFloat>> = {
  "+": add,
  "-": (one, other) => add(one, negated(other)),
  "*": multiply,
  "/": divide,
  "%": modulo,
};

/** The type that an operator's operands are converted to. */
export function operandType(operator: BinaryOperator | UnaryOperator): Type {
  if (operator === "==" || operator === "!=") return { kind: "dynamic" };
  return operator === "&&" || operator === "||" || operator === "!" ? boolType : numberType;
}

/** Applies an operator to operands of its type, except `&&` and `||`. */
export function applyBinary(operator: BinaryOperator, left: HclValue, right: HclValue): HclValue {
  if (operator === "==") return boolValue(isEqual(left, right));
  if (operator === "!=") return boolValue(!isEqual(left, right));
  const [one, other] = [numberOf(left), numberOf(right)];
  const comparison = comparisons[operator];
  if (comparison !== undefined) return boolValue(comparison(compare(one, other)));
  const operation = arithmetic[operator];
  if (operation === undefined) throw new HclError(`unknown operator ${operator}`);
  return numberValue(operation(one, other));
}

export function applyUnary(operator: UnaryOperator, operand: HclValue): HclValue {
  return operator === "-" ? numberValue(negated(numberOf(operand))) : boolValue(!isTrue(operand));
}

function numberOf(value: HclValue): BigFloat {
  if (value.kind === "number") return value.number;
  throw new HclError("a number is required, not null");
}

/** Returns the boolean that a value is, or can be converted to. */
export function isTrue(value: HclValue): boolean {
  const converted = convert(value, boolType);
  if (converted.kind === "bool") return converted.isTrue;
  throw new HclError("true or false is required, not null");
}
