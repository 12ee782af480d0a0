import { ArgumentError } from "../evaluate/eval-context.ts";
import { applyBinary, applyUnary } from "../evaluate/operators.ts";
import { HclError } from "../hcl-error.ts";
import type { BinaryOperator } from "../syntax/tree.ts";
import {
  add,
  type BigFloat,
  compare,
  fromDouble,
  fromInteger,
  infinity,
  isInteger,
  isZero,
  toDouble,
  truncated,
} from "../values/big-float.ts";
import { numberType, typeName } from "../values/types.ts";
import { boolValue, type HclValue, integerValue, listValue, numberValue, typeOf } from "../values/value.ts";
import {
  any,
  bool,
  boolIn,
  define,
  defineVariadic,
  doubleIn,
  type FunctionTable,
  integerIn,
  number,
  numberIn,
  orNull,
  textIn,
} from "./define.ts";

const operator = (symbol: BinaryOperator) =>
  define([number("a"), number("b")], ([one, other]) => applyBinary(symbol, given(one), given(other)));
const equality = (symbol: BinaryOperator) =>
  define([orNull(any("a")), orNull(any("b"))], ([one, other]) =>
    applyBinary(symbol, given(one), given(other)),
  );
const unary = (change: (value: BigFloat) => BigFloat) =>
  define([number("num")], ([value]) => numberValue(change(numberIn(value))));
const doubles = (names: readonly [string, string], compute: (one: number, other: number) => number) =>
  define(names.map(number), ([one, other]) =>
    numberValue(fromDouble(compute(doubleIn(one), doubleIn(other)))),
  );

/** Operators as functions, and other functions of numbers and booleans. */
export const numberFunctions: FunctionTable = {
  add: operator("+"),
  subtract: operator("-"),
  multiply: operator("*"),
  divide: operator("/"),
  modulo: operator("%"),
  greaterthan: operator(">"),
  greaterthanorequalto: operator(">="),
  lessthan: operator("<"),
  lessthanorequalto: operator("<="),
  equal: equality("=="),
  notequal: equality("!="),
  negate: define([number("num")], ([value]) => applyUnary("-", given(value))),
  not: define([bool("val")], ([value]) => boolValue(!boolIn(value))),
  and: define([bool("a"), bool("b")], ([one, other]) => boolValue(boolIn(one) && boolIn(other))),
  or: define([bool("a"), bool("b")], ([one, other]) => boolValue(boolIn(one) || boolIn(other))),
  absolute: unary((value) => ({ ...value, sign: 1 })),
  int: unary((value) => (isInteger(value) ? value : fromInteger(truncated(value)))),
  ceil: unary((value) => toWhole(value, 1)),
  floor: unary((value) => toWhole(value, -1)),
  max: extreme((order) => order > 0, infinity(-1)),
  min: extreme((order) => order < 0, infinity(1)),
  log: doubles(["num", "base"], (value, base) => Math.log(value) / Math.log(base)),
  pow: doubles(["num", "power"], (value, power) => value ** power),
  signum: define([number("num")], (values) => integerValue(Math.sign(integerIn(values, 0)) || 0)),
  parseint: define([any("number"), number("base")], parseInteger),
  range: defineVariadic([], number("params"), range),
};

function given(value: HclValue | undefined): HclValue {
  if (value === undefined) throw new HclError("an argument is missing");
  return value;
}

function toWhole(value: BigFloat, direction: 1 | -1): BigFloat {
  if (value.mantissa === undefined || isInteger(value)) return value;
  const whole = truncated(value);
  return fromInteger(value.sign === direction ? whole + BigInt(direction) : whole, value.precision);
}

function extreme(isBetter: (order: number) => boolean, worst: BigFloat) {
  return defineVariadic([], number("numbers"), (values) => {
    if (values.length === 0) throw new HclError("at least one number is required");
    const best = values
      .map(numberIn)
      .reduce((one, other) => (isBetter(compare(other, one)) ? other : one), worst);
    return numberValue(best);
  });
}

/** The digits of large bases. In bases up to 36, upper-case letters mean the same as lower-case ones. */
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

function parseInteger(values: readonly HclValue[]): HclValue {
  const [source] = values;
  if (source?.kind !== "string")
    throw new ArgumentError(
      0,
      `a string is required, not a ${source === undefined ? "nothing" : typeName(typeOf(source))}`,
    );
  const base = integerIn(values, 1);
  if (base < 2 || base > 62) throw new ArgumentError(1, "a whole number from 2 to 62 is required");
  const written = textIn(source);
  const [, sign, magnitude = ""] = /^([+-]?)([0-9a-zA-Z]+)$/.exec(written) ?? [];
  let value = 0n;
  for (const digit of base <= 36 ? magnitude.toLowerCase() : magnitude) {
    const worth = digits.indexOf(digit);
    if (worth >= base) value = -1n;
    if (value < 0n) break;
    value = value * BigInt(base) + BigInt(worth);
  }
  if (sign === undefined || value < 0n)
    throw new ArgumentError(0, `${JSON.stringify(written)} is not an integer of base ${base}`);
  return numberValue(fromInteger(sign === "-" ? -value : value));
}

const maxRange = 1024;

function range(values: readonly HclValue[]): HclValue {
  if (values.length < 1 || values.length > 3) throw new HclError("one to three numbers are required");
  const [first, second, third] = values.map(numberIn);
  const zero = fromInteger(0);
  const start = second === undefined ? zero : (first ?? zero);
  const end = second ?? first ?? zero;
  const step = third ?? fromInteger(compare(end, start) < 0 ? -1 : 1);
  if (isZero(step)) throw new ArgumentError(2, "the step must not be zero");
  if (compare(end, start) * step.sign < 0)
    throw new ArgumentError(1, `the end must be ${step.sign < 0 ? "less" : "greater"} than the start`);
  const made: HclValue[] = [];
  const [from, by] = [toDouble(start), toDouble(step)];
  const isWhole =
    start.precision <= 64 &&
    step.precision <= 64 &&
    Number.isInteger(from) &&
    Number.isInteger(by) &&
    Math.abs(from) + Math.abs(by) < 2 ** 40;
  if (isWhole) {
    const count = Math.ceil((toDouble(end) - from) / by);
    if (count > maxRange) throw tooMany();
    return listValue(
      numberType,
      Array.from({ length: count }, (_, index) => integerValue(from + index * by)),
    );
  }
  for (let next = start; compare(next, end) * step.sign < 0; next = add(next, step)) {
    if (made.length >= maxRange) throw tooMany();
    made.push(numberValue(next));
  }
  return listValue(numberType, made);
}

function tooMany(): HclError {
  return new HclError(`there would be more than ${maxRange} numbers`);
}
