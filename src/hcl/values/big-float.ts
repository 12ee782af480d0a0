/**
 * Binary floating-point numbers of any precision, as HCL's numbers are: those written in a file have 512 bits. A result has the
 * precision of the more precise operand, and is rounded to the nearest value, to the even one of two.
 */
import { HclError } from "../hcl-error.ts";

export interface BigFloat {
  /** `sign * mantissa * 2 ** exponent`; the mantissa is odd, or 0. Infinity has no mantissa. */
  sign: 1 | -1;
  mantissa: bigint | undefined;
  exponent: number;
  /** Maximum number of bits of the mantissa. */
  precision: number;
}

/** The precision of numbers that are written in a file or a string. */
export const writtenPrecision = 512;
const integerPrecision = 64;
const doublePrecision = 53;

/** Exponents beyond this stand for numbers with more digits than anybody can use. */
const maxExponent = 40_000;

export const infinity = (sign: 1 | -1): BigFloat => ({
  sign,
  mantissa: undefined,
  exponent: 0,
  precision: 0,
});

/** Returns the nearest number with at most `precision` bits to `mantissa * 2 ** exponent`. A rest makes the value slightly larger. */
export function roundToPrecision(
  mantissa: bigint,
  exponent: number,
  precision: number,
  { sign = mantissa < 0n ? -1 : 1, hasRest = false }: { sign?: 1 | -1; hasRest?: boolean } = {},
): BigFloat {
  let bits = mantissa < 0n ? -mantissa : mantissa;
  let power = exponent;
  const excess = bitLength(bits) - precision;
  if (excess > 0) {
    const shift = BigInt(excess);
    const kept = bits >> shift;
    const dropped = bits - (kept << shift);
    const half = 1n << (shift - 1n);
    const isUp = dropped > half || (dropped === half && (hasRest || (kept & 1n) === 1n));
    bits = isUp ? kept + 1n : kept;
    power += excess;
  }
  if (bits === 0n) return { sign, mantissa: 0n, exponent: 0, precision };
  const zeros = trailingZeros(bits);
  bits >>= BigInt(zeros);
  power += zeros;
  if (Math.abs(power) > maxExponent) throw new HclError("the number is too large or too small");
  return { sign, mantissa: bits, exponent: power, precision };
}

export function fromInteger(value: number | bigint, precision = integerPrecision): BigFloat {
  const bits = BigInt(value);
  return roundToPrecision(bits, 0, Math.max(precision, bitLength(bits < 0n ? -bits : bits)));
}

/** Returns the exact value of a double. */
export function fromDouble(value: number): BigFloat {
  if (Number.isNaN(value)) throw new HclError("the result is not a number");
  if (!Number.isFinite(value)) return infinity(value > 0 ? 1 : -1);
  let mantissa = Math.abs(value);
  let exponent = 0;
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    exponent -= 1;
  }
  return roundToPrecision(BigInt(mantissa), exponent, doublePrecision, { sign: value < 0 ? -1 : 1 });
}

/** Returns the nearest double. */
export function toDouble({ sign, mantissa, exponent }: BigFloat): number {
  if (mantissa === undefined) return sign * Number.POSITIVE_INFINITY;
  const { mantissa: bits = 0n, exponent: power } = roundToPrecision(mantissa, exponent, doublePrecision);
  // In two steps: the power alone may be out of range.
  const half = Math.trunc(power / 2);
  return sign * Number(bits) * 2 ** half * 2 ** (power - half);
}

export function negated(number: BigFloat): BigFloat {
  return { ...number, sign: number.sign === 1 ? -1 : 1 };
}

export function add(one: BigFloat, other: BigFloat): BigFloat {
  if (one.mantissa === undefined || other.mantissa === undefined) {
    if (one.mantissa === other.mantissa && one.sign !== other.sign)
      throw new HclError("can't compute sum of opposing infinities");
    return one.mantissa === undefined ? one : other;
  }
  const exponent = Math.min(one.exponent, other.exponent);
  const sum = scaled(one, exponent) + scaled(other, exponent);
  return roundToPrecision(sum, exponent, Math.max(one.precision, other.precision));
}

export function multiply(one: BigFloat, other: BigFloat): BigFloat {
  const sign = one.sign === other.sign ? 1 : -1;
  if (one.mantissa === undefined || other.mantissa === undefined) {
    if (one.mantissa === 0n || other.mantissa === 0n) throw new HclError("can't multiply zero by infinity");
    return infinity(sign);
  }
  const exponent = one.exponent + other.exponent;
  const product = roundToPrecision(one.mantissa * other.mantissa, exponent, writtenPrecision, { sign });
  const needed = bitLength(product.mantissa ?? 0n);
  return { ...product, precision: Math.max(one.precision, other.precision, needed) };
}

export function divide(one: BigFloat, other: BigFloat): BigFloat {
  const sign = one.sign === other.sign ? 1 : -1;
  const isUndefined = isZero(one)
    ? isZero(other)
    : one.mantissa === undefined && other.mantissa === undefined;
  if (isUndefined) throw new HclError("can't divide zero by zero or infinity by infinity");
  if (one.mantissa === undefined || isZero(other)) return infinity(sign);
  const precision = Math.max(one.precision, other.precision);
  if (other.mantissa === undefined || other.mantissa === 0n) return { ...fromInteger(0), sign, precision };
  // Two bits more than needed; what the rest is does not matter then, only that there is one.
  const shift = Math.max(0, precision + 2 + bitLength(other.mantissa) - bitLength(one.mantissa));
  const dividend = one.mantissa << BigInt(shift);
  const quotient = dividend / other.mantissa;
  const hasRest = quotient * other.mantissa !== dividend;
  // The rest is put below the last bit, so that it counts wherever the quotient is cut.
  const exact = (quotient << 1n) | (hasRest ? 1n : 0n);
  return roundToPrecision(exact, one.exponent - other.exponent - shift - 1, precision, { sign });
}

/** Returns what remains of a division towards zero, as HCL has it: with the dividend's sign. */
export function modulo(one: BigFloat, other: BigFloat): BigFloat {
  if (isZero(other)) return one;
  if (one.mantissa === undefined) return multiply(one, other);
  if (other.mantissa === undefined) return one;
  // As HCL has it, all results on the way have the dividend's precision only.
  const whole = truncated(divide(one, other));
  const quotient = roundToPrecision(whole, 0, one.precision);
  const { mantissa = 0n, exponent, sign } = quotient;
  const product = roundToPrecision(mantissa * other.mantissa, exponent + other.exponent, one.precision, {
    sign: sign === other.sign ? 1 : -1,
  });
  const rest = add(one, negated(product));
  return roundToPrecision(rest.mantissa ?? 0n, rest.exponent, one.precision, { sign: rest.sign });
}

/** Returns a negative number, 0 or a positive number, as `one` is less than, equal to or greater than `other`. */
export function compare(one: BigFloat, other: BigFloat): number {
  if (one.mantissa === undefined || other.mantissa === undefined) {
    const rank = ({ sign, mantissa }: BigFloat) => (mantissa === undefined ? sign : 0);
    return rank(one) - rank(other);
  }
  const exponent = Math.min(one.exponent, other.exponent);
  const [left, right] = [scaled(one, exponent), scaled(other, exponent)];
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isZero({ mantissa }: BigFloat): boolean {
  return mantissa === 0n;
}

export function isInteger({ mantissa, exponent }: BigFloat): boolean {
  return mantissa !== undefined && (exponent >= 0 || mantissa === 0n);
}

/** Returns the integer part. */
export function truncated({ sign, mantissa, exponent }: BigFloat): bigint {
  if (mantissa === undefined) throw new HclError("can't truncate infinity to an integer");
  const magnitude = exponent >= 0 ? mantissa << BigInt(exponent) : mantissa >> BigInt(-exponent);
  return sign < 0 ? -magnitude : magnitude;
}

/** Returns the number as `n * 2 ** exponent`. */
function scaled({ sign, mantissa = 0n, exponent: own }: BigFloat, exponent: number): bigint {
  const magnitude = mantissa << BigInt(own - exponent);
  return sign < 0 ? -magnitude : magnitude;
}

export function bitLength(bits: bigint): number {
  if (bits === 0n) return 0;
  const hex = bits.toString(16);
  return (hex.length - 1) * 4 + (32 - Math.clz32(Number.parseInt(hex[0] ?? "0", 16)));
}

function trailingZeros(bits: bigint): number {
  if ((bits & 1n) === 1n) return 0;
  return bitLength(bits & -bits) - 1;
}
