/** Numbers as texts: parsed, and formatted with the fewest digits that mean the same number. */
import { HclError } from "../hcl-error.ts";
import {
  type BigFloat,
  bitLength,
  divide,
  fromInteger,
  infinity,
  roundToPrecision,
  writtenPrecision,
} from "./big-float.ts";

const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;
/** More digits than any real number needs, and few enough to be parsed without delay. */
const maxDigits = 10_000;

/** Parses a decimal number; `undefined` for other texts. */
export function parseNumber(text: string): BigFloat | undefined {
  const infinite = /^([+-]?)[iI]nf$/.exec(text);
  if (infinite !== null) return infinity(infinite[1] === "-" ? -1 : 1);
  const [, sign, whole = "", fraction = "", power = "0"] = pattern.exec(text) ?? [];
  if (sign === undefined || whole + fraction === "") return undefined;
  const exponent = Number(power) - fraction.length;
  if (Math.abs(exponent) + whole.length + fraction.length > maxDigits)
    throw new HclError("the number is too large or too small");
  const digits = BigInt(whole + fraction);
  const signed = sign === "-" ? { sign: -1 as const } : {};
  if (exponent >= 0) return roundToPrecision(digits * 10n ** BigInt(exponent), 0, writtenPrecision, signed);
  const dividend = { ...fromInteger(digits, writtenPrecision), ...signed };
  return {
    ...divide({ ...dividend, precision: writtenPrecision }, fromInteger(10n ** BigInt(-exponent))),
    precision: writtenPrecision,
  };
}

/** A number's significant digits, and the position of the decimal point from their start: 12.5 is `125` and 2. */
export interface Digits {
  digits: string;
  point: number;
}

/** Returns the fewest digits that stand for this number and no other one of its precision. */
export function shortestDigits({ mantissa = 0n, exponent, precision }: BigFloat): Digits {
  if (mantissa === 0n) return { digits: "", point: 0 };
  // All digits of an integer count if its precision includes the last one.
  if (exponent >= 0 && bitLength(mantissa) + exponent <= precision)
    return exactDigits({ mantissa, exponent, sign: 1, precision });
  // Half a unit of the last place is 1 here.
  const shift = precision + 1 - bitLength(mantissa);
  const middle = mantissa << BigInt(shift);
  const power = exponent - shift;
  const isInclusive = (middle & 2n) === 0n;
  const scale = power >= 0 ? 1n << BigInt(power) : 5n ** BigInt(-power);
  const [upper, value, lower] = [middle + 1n, middle, middle - 1n].map((each) => (each * scale).toString());
  const length = upper?.length ?? 0;
  const point = length + Math.min(0, power);
  const exact = value?.padStart(length, "0") ?? "";
  const digits = shortest(exact, lower?.padStart(length, "0") ?? "", upper ?? "", isInclusive);
  const zeros = /^0*/.exec(digits)?.[0].length ?? 0;
  return { digits: digits.slice(zeros).replace(/0+$/, ""), point: point - zeros };
}

/** Returns as many digits of `exact` as tell it from its neighbours, rounded. All three texts have the same length. */
function shortest(exact: string, lower: string, upper: string, isInclusive: boolean): string {
  const isRestZero = (text: string, from: number) => /^0*$/.test(text.slice(from));
  for (let index = 0; index < exact.length; index++) {
    const [digit, low, high] = [exact, lower, upper].map((text) => Number(text[index]));
    if (digit === undefined || low === undefined || high === undefined) break;
    const canDrop = low !== digit || (isInclusive && isRestZero(lower, index + 1));
    const canRaise = digit !== high && (isInclusive || digit + 1 < high || !isRestZero(upper, index + 1));
    if (canDrop && canRaise) return roundedDigits(exact, index + 1);
    if (canDrop) return exact.slice(0, index + 1).padEnd(exact.length, "0");
    if (canRaise) return raised(exact.slice(0, index + 1)).padEnd(exact.length, "0");
  }
  return exact;
}

/** Rounds to `count` digits, half to even; zeros take the place of the others. A carry at the start adds no digit: 0 is before it. */
function roundedDigits(digits: string, count: number): string {
  const [kept, dropped] = [digits.slice(0, count), digits.slice(count)];
  const isHalf = /^50*$/.test(dropped);
  const isUp = isHalf ? Number(kept.at(-1)) % 2 === 1 : dropped >= "5";
  return (isUp ? raised(kept) : kept).padEnd(digits.length, "0");
}

function raised(digits: string): string {
  return (BigInt(digits) + 1n).toString().padStart(digits.length, "0");
}

/** Rounds a number's digits to `places` after the decimal point. */
export function roundedTo({ digits, point }: Digits, places: number): Digits {
  const count = point + places;
  if (count >= digits.length) return { digits, point };
  if (count < 0) return { digits: "", point: 0 };
  const result = roundedDigits(`0${digits}`, count + 1).slice(0, count + 1);
  return result.startsWith("0")
    ? { digits: result.slice(1).replace(/0+$/, ""), point }
    : { digits: result.replace(/0+$/, ""), point: point + 1 };
}

/** Returns all digits of a number. */
export function exactDigits({ mantissa = 0n, exponent }: BigFloat): Digits {
  if (mantissa === 0n) return { digits: "", point: 0 };
  const scaled = exponent >= 0 ? mantissa << BigInt(exponent) : mantissa * 5n ** BigInt(-exponent);
  const digits = scaled.toString();
  return { digits: digits.replace(/0+$/, ""), point: digits.length + Math.min(0, exponent) };
}

/** Formats a number without an exponent, with the fewest digits. */
export function numberText(number: BigFloat): string {
  if (number.mantissa === undefined) return number.sign < 0 ? "-Inf" : "+Inf";
  return signOf(number) + plainText(shortestDigits(number), 0);
}

function signOf({ sign }: BigFloat): string {
  return sign < 0 ? "-" : "";
}

/** Writes digits as a plain decimal number with at least `places` digits after the point. */
export function plainText({ digits, point }: Digits, places: number): string {
  const whole = point <= 0 ? "0" : digits.slice(0, point).padEnd(point, "0");
  const fraction = (point < 0 ? "0".repeat(-point) + digits : digits.slice(Math.max(0, point))).padEnd(
    places,
    "0",
  );
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
