import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { type BigFloat, isInteger, truncated } from "../values/big-float.ts";
import { type Digits, exactDigits, plainText, roundedTo, shortestDigits } from "../values/big-float-text.ts";
import { convert } from "../values/conversion.ts";
import { jsonTextOf, quotedJson } from "../values/json-text.ts";
import { boolType, numberType, stringType } from "../values/types.ts";
import { type HclValue, isSequenceValue, stringList, stringValue } from "../values/value.ts";
import {
  any,
  boolIn,
  charactersOf,
  defineVariadic,
  type FunctionTable,
  numberIn,
  orNull,
  text,
  textIn,
} from "./define.ts";

export const formatFunctions: FunctionTable = {
  format: defineVariadic([text("format")], orNull(any("args")), ([format, ...given]) =>
    stringValue(formatText(textIn(format), given)),
  ),
  formatlist: defineVariadic([text("format")], orNull(any("args")), ([format, ...given]) =>
    formatList(textIn(format), given),
  ),
};

interface Verb {
  /** The verb as it is written, for messages. */
  raw: string;
  flags: string;
  width: number;
  precision: number | undefined;
  letter: string;
}

const verbs = /%%|%([0#\-+ ]*)([1-9]\d*)?(?:\.(\d*))?(?:\[([1-9]\d*)\])?([a-zA-Z])|%/g;
/** More than any line is wide. */
const maxWidth = 10_000;

function formatText(format: string, given: readonly HclValue[]): string {
  let next = 0;
  let highest = 0;
  const made = format.replace(
    verbs,
    (raw, flags?: string, width?: string, precision?: string, index?: string, letter?: string) => {
      if (raw === "%%") return "%";
      if (letter === undefined)
        throw new ArgumentError(0, "invalid format: a verb is required after %, as in %s; a literal % is %%");
      const position = index === undefined ? next : Number(index) - 1;
      next = position + 1;
      highest = Math.max(highest, next);
      const value = given[position];
      if (value === undefined)
        throw new HclError(
          `there is no argument for ${raw}: ${next} would be needed, and there are ${given.length}`,
        );
      const verb = {
        raw,
        flags: flags ?? "",
        width: Number(width ?? 0),
        precision: precision === undefined ? undefined : Number(precision),
        letter,
      };
      if (verb.width > maxWidth || (verb.precision ?? 0) > maxWidth)
        throw new ArgumentError(0, `${raw} is too wide`);
      return formatValue(verb, value);
    },
  );
  if (highest >= given.length) return made;
  throw new ArgumentError(
    highest + 1,
    highest === 0
      ? "there are too many arguments: the format has no verbs"
      : `there are too many arguments: the format uses ${highest}`,
  );
}

function formatList(format: string, given: readonly HclValue[]): HclValue {
  if (given.length === 0) return stringList([formatText(format, [])]);
  const lists = given.filter(isSequenceValue);
  const lengths = new Set(lists.map(({ elements }) => elements.length));
  if (lengths.size > 1) {
    const index = given.findIndex(
      (each) => isSequenceValue(each) && each.elements.length !== lists[0]?.elements.length,
    );
    throw new ArgumentError(index + 1, `the lists have different lengths: ${[...lengths].join(" and ")}`);
  }
  const [length = 1] = lengths;
  return stringList(
    Array.from({ length }, (_, index) =>
      formatText(
        format,
        given.flatMap((each) => (isSequenceValue(each) ? (each.elements[index] ?? []) : each)),
      ),
    ),
  );
}

function formatValue(verb: Verb, value: HclValue): string {
  if (value.kind === "null" && verb.letter !== "v")
    throw new HclError(`null can't be formatted by ${verb.raw}`);
  try {
    switch (verb.letter) {
      case "v":
        return padded(verb, asIs(verb, value));
      case "t":
        return String(boolIn(convert(value, boolType)));
      case "s":
      case "q":
        return formatString(verb, textIn(convert(value, stringType)));
      case "b":
      case "d":
      case "o":
      case "x":
      case "X":
        return formatInteger(verb, numberIn(convert(value, numberType)));
      case "e":
      case "E":
      case "f":
      case "g":
      case "G":
        return formatNumber(verb, numberIn(convert(value, numberType)));
    }
  } catch (error) {
    if (error instanceof HclError) throw new HclError(`${verb.raw}: ${error.message}`);
    throw error;
  }
  throw new HclError(
    `there is no format ${verb.raw}`,
    undefined,
    "There are %s, %q, %d, %b, %o, %x, %X, %f, %e, %g, %t and %v.",
  );
}

function asIs({ flags }: Verb, value: HclValue): string {
  if (!flags.includes("#") && value.kind === "string") return value.text;
  if (!flags.includes("#") && value.kind === "number") return generalText(value.number, undefined, "e");
  return jsonTextOf(value);
}

function formatString(verb: Verb, value: string): string {
  const { precision, letter } = verb;
  const shown = precision ? charactersOf(value).slice(0, precision).join("") : value;
  return padded(verb, letter === "q" ? quotedJson(shown) : shown);
}

/** Fills up to the width: with spaces or, also behind a text, zeros. */
function padded({ flags, width }: Verb, shown: string): string {
  const fill = (flags.includes("0") ? "0" : " ").repeat(Math.max(0, width - charactersOf(shown).length));
  return flags.includes("-") ? shown + fill : fill + shown;
}

const bases: Readonly<Record<string, number>> = { b: 2, o: 8, d: 10, x: 16, X: 16 };
const prefixes: Readonly<Record<string, string>> = { o: "0", x: "0x", X: "0X" };

function formatInteger(verb: Verb, number: BigFloat): string {
  const { flags, letter, precision, width } = verb;
  if (!isInteger(number)) throw new HclError("an integer is required");
  const value = truncated(number);
  const digits = (value < 0n ? -value : value).toString(bases[letter]);
  const shown = letter === "X" ? digits.toUpperCase() : digits;
  const prefix = flags.includes("#") ? (prefixes[letter] ?? "") : "";
  const start = signIn(flags, value < 0n) + prefix;
  if (precision !== undefined) {
    const exact = precision === 0 && value === 0n ? "" : shown.padStart(precision, "0");
    return padded({ ...verb, flags: flags.replaceAll("0", "") }, start + exact);
  }
  if (flags.includes("-")) return (start + shown).padEnd(width);
  return flags.includes("0")
    ? start + shown.padStart(width - start.length, "0")
    : (start + shown).padStart(width);
}

function signIn(flags: string, isNegative: boolean): string {
  if (isNegative) return "-";
  return flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
}

function formatNumber(verb: Verb, number: BigFloat): string {
  const { flags, letter, width } = verb;
  const magnitude: BigFloat = { ...number, sign: 1 };
  const shown =
    number.mantissa === undefined
      ? "Inf"
      : letter === "f"
        ? plainText(roundedTo(exactDigits(magnitude), verb.precision ?? 6), verb.precision ?? 6)
        : letter === "g" || letter === "G"
          ? generalText(magnitude, verb.precision, letter === "g" ? "e" : "E")
          : exponentText(exactDigits(magnitude), verb.precision ?? 6, letter);
  const start =
    number.mantissa === undefined ? (number.sign < 0 ? "-" : "+") : signIn(flags, number.sign < 0);
  if (flags.includes("-")) return (start + shown).padEnd(width);
  const isZeroFilled = flags.includes("0") && number.mantissa !== undefined;
  return isZeroFilled ? start + shown.padStart(width - start.length, "0") : (start + shown).padStart(width);
}

/** Formats a number with an exponent if it is very large or very small, else without. */
function generalText(number: BigFloat, precision: number | undefined, letter: string): string {
  if (number.mantissa === undefined) return number.sign < 0 ? "-Inf" : "+Inf";
  const sign = number.sign < 0 ? "-" : "";
  const wanted = precision === 0 ? 1 : precision;
  const all = wanted === undefined ? shortestDigits(number) : exactDigits(number);
  const found = wanted === undefined ? all : roundedTo(all, wanted - all.point);
  const count = found.digits.length;
  const few = wanted !== undefined && wanted > count && count >= found.point ? count : wanted;
  const exponent = found.point - 1;
  const isLong = exponent < -4 || exponent >= (few ?? 6);
  if (found.digits !== "" && isLong) return sign + exponentText(found, Math.max(0, count - 1), letter);
  return sign + plainText(found, 0);
}

function exponentText(digits: Digits, places: number, letter: string): string {
  const { digits: rounded, point } = roundedTo(digits, places + 1 - digits.point);
  const first = rounded[0] ?? "0";
  const fraction = rounded.slice(1, places + 1).padEnd(places, "0");
  const exponent = rounded === "" ? 0 : point - 1;
  const shown = String(Math.abs(exponent)).padStart(2, "0");
  return `${first}${places > 0 ? `.${fraction}` : ""}${letter}${exponent < 0 ? "-" : "+"}${shown}`;
}
