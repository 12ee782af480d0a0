/** Go's `fmt.Sprint` and `fmt.Sprintf`. */

import { goQuote, goQuoteCharacter } from "../go/quote.ts";
import { formatFloat, formatValue } from "./format-value.ts";
import { plainJson } from "./json.ts";
import { GoStruct, GoText, type GoValue, goTypeOf } from "./values.ts";

/** Prints values, with spaces between two that are no strings. */
export function sprint(values: readonly GoValue[]): string {
  let text = "";
  let wasText = true;
  for (const [at, value] of values.entries()) {
    const isText = typeof value === "string" || value instanceof GoText;
    if (at > 0 && !isText && !wasText) text += " ";
    text += withPointer(value);
    wasText = isText;
  }
  return text;
}

/** A pointer is shown as one where it is the whole value. */
function withPointer(value: GoValue, hasNames = false): string {
  return `${value instanceof GoStruct && value.isPointer ? "&" : ""}${formatValue(value, hasNames)}`;
}

interface Directive {
  flags: string;
  width: number | undefined;
  precision: number | undefined;
  verb: string;
}

const directive =
  /%([+\-# 0]*)(?:\[(\d+)\])?(\*|\d+)?(?:(\.)(?:\[(\d+)\])?(\*|\d+)?)?(?:\[(\d+)\])?([\s\S]?)/gu;

export function sprintf(format: string, values: readonly GoValue[]): string {
  let next = 0;
  let isReordered = false;
  const take = (): GoValue | undefined => values[next++];
  const star = (text: string | undefined): number | undefined => {
    if (text !== "*") return text === undefined ? undefined : Number(text);
    const value = take();
    return typeof value === "bigint" ? Number(value) : undefined;
  };
  const jump = (index: string | undefined) => {
    if (index === undefined) return;
    isReordered = true;
    next = Number(index) - 1;
  };
  const text = format.replace(directive, (_, flags, first, width, dot, second, precision, third, verb) => {
    if (verb === "%") return "%";
    if (verb === "") return "%!(NOVERB)";
    jump(first);
    const wide = star(width);
    jump(second);
    const precise = dot === undefined ? undefined : (star(precision) ?? 0);
    jump(third);
    const isLeft = wide !== undefined && wide < 0;
    const parsed: Directive = {
      ...{ verb, flags: isLeft ? `${flags}-` : flags },
      ...{ width: wide === undefined ? undefined : Math.abs(wide), precision: precise },
    };
    if (next < 0 || next >= values.length) {
      next += 1;
      return (first ?? third) ? `%!${verb}(BADINDEX)` : `%!${verb}(MISSING)`;
    }
    return formatOne(parsed, take() ?? null);
  });
  if (isReordered || next >= values.length) return text;
  const extra = values
    .slice(next)
    .map((each) => (each === null ? "<nil>" : `${goTypeOf(each)}=${formatValue(each)}`));
  return `${text}%!(EXTRA ${extra.join(", ")})`;
}

function formatOne(parsed: Directive, value: GoValue): string {
  const { verb } = parsed;
  if (verb === "T") return pad(goTypeOf(value), parsed);
  if (verb === "v") return formatDefault(parsed, value);
  if (value === null) return `%!${verb}(<nil>)`;
  if (Array.isArray(value)) return `[${value.map((each) => formatOne(parsed, each)).join(" ")}]`;
  const bad = () => `%!${verb}(${goTypeOf(value)}=${formatValue(value)})`;
  if (typeof value === "boolean") return verb === "t" ? pad(String(value), parsed) : bad();
  if (typeof value === "bigint") return "bcdoOqxXU".includes(verb) ? integer(value, parsed) : bad();
  if (typeof value === "number") return "eEfFgG".includes(verb) ? float(value, parsed) : bad();
  const text = typeof value === "string" ? value : value instanceof GoText ? value.text : undefined;
  if (text === undefined) return verb === "s" ? pad(withPointer(value), parsed) : bad();
  const formatted = formatText(text, parsed);
  return formatted === undefined ? bad() : pad(formatted, parsed);
}

/** `%v` */
function formatDefault(parsed: Directive, value: GoValue): string {
  if (parsed.flags.includes("#")) return pad(goSyntax(value), parsed);
  if (typeof value === "bigint") return integer(value, { ...parsed, verb: "d" });
  if (typeof value === "number" && parsed.precision !== undefined)
    return float(value, { ...parsed, verb: "g" });
  return pad(withPointer(value, parsed.flags.includes("+")), parsed);
}

/** Returns `undefined` if the verb is not one for strings. */
function formatText(text: string, { verb, flags, precision }: Directive): string | undefined {
  const cut = precision === undefined ? text : [...text].slice(0, precision).join("");
  switch (verb) {
    case "s":
      return cut;
    case "q":
      return flags.includes("#") && !text.includes("`") ? `\`${cut}\`` : goQuote(cut);
    case "x":
      return Buffer.from(text).toString("hex");
    case "X":
      return Buffer.from(text).toString("hex").toUpperCase();
    default:
      return undefined;
  }
}

function integer(value: bigint, { verb, flags, width, precision }: Directive): string {
  const code = Number(value);
  const isCharacter = code >= 0 && code <= 0x10ffff;
  if (verb === "c") return pad(isCharacter ? String.fromCodePoint(code) : "\uFFFD", { flags, width });
  if (verb === "q") return pad(goQuoteCharacter(code), { flags, width });
  if (verb === "U") return pad(`U+${code.toString(16).toUpperCase().padStart(4, "0")}`, { flags, width });
  const base = { b: 2, o: 8, O: 8, x: 16, X: 16 }[verb] ?? 10;
  const plain = (value < 0n ? -value : value).toString(base).padStart(precision ?? 0, "0");
  const prefixes: Readonly<Record<string, string>> = { b: "0b", o: "0", x: "0x", X: "0X" };
  const prefix = verb === "O" ? "0o" : flags.includes("#") ? (prefixes[verb] ?? "") : "";
  const digits = verb === "X" ? plain.toUpperCase() : plain;
  return signed(
    `${prefix}${digits}`,
    value < 0n,
    { flags, width: precision === undefined ? width : undefined },
    width,
  );
}

function float(value: number, { verb, flags, width, precision }: Directive): string {
  const size = Math.abs(value);
  const kind = verb.toLowerCase();
  let digits: string;
  if (!Number.isFinite(value)) digits = formatFloat(size).replace("+", "");
  else if (kind === "f") digits = fixed(size, precision ?? 6);
  else if (kind === "e") digits = exponent(size.toExponential(precision ?? 6));
  else if (precision === undefined) digits = formatFloat(size);
  else {
    const [, power = "0"] = size.toExponential(Math.max(precision, 1) - 1).split("e");
    const isLong = Number(power) < -4 || Number(power) >= Math.max(precision, 1);
    const [number = "", tail] = (
      isLong
        ? exponent(size.toExponential(Math.max(precision, 1) - 1))
        : size.toPrecision(Math.max(precision, 1))
    ).split("e");
    const short = number.includes(".") ? number.replace(/\.?0+$/, "") : number;
    digits = tail === undefined ? short : `${short}e${tail}`;
  }
  return signed(verb === kind ? digits : digits.toUpperCase(), value < 0, { flags, width }, width);
}

/** Rounds a value just between two to the even one, as Go does; `toFixed` takes the larger. */
function fixed(size: number, precision: number): string {
  const scaled = size * 10 ** precision;
  const below = Math.floor(scaled);
  const isBetween = scaled - below === 0.5 && scaled / 10 ** precision === size;
  return isBetween && below % 2 === 0
    ? (below / 10 ** precision).toFixed(precision)
    : size.toFixed(precision);
}

/** Gives an exponent two digits, as Go has it. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

function signed(
  digits: string,
  isNegative: boolean,
  { flags, width }: Pick<Directive, "flags" | "width">,
  padded: number | undefined,
): string {
  const sign = isNegative ? "-" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  const isFilled = flags.includes("0") && !flags.includes("-") && width !== undefined;
  return pad(`${sign}${isFilled ? digits.padStart(width - sign.length, "0") : digits}`, {
    ...{ flags: flags.replace("0", ""), width: padded },
  });
}

function pad(text: string, { flags, width = 0 }: Pick<Directive, "flags" | "width">): string {
  const missing = Math.max(0, width - [...text].length);
  if (flags.includes("-")) return text + " ".repeat(missing);
  return (flags.includes("0") ? "0" : " ").repeat(missing) + text;
}

/** Approximates Go's `%#v`. */
function goSyntax(value: GoValue): string {
  if (typeof value === "string") return goQuote(value);
  if (value instanceof GoText) return goQuote(value.text);
  if (value === null || typeof value !== "object") return formatValue(value);
  return `${goTypeOf(value)}${plainJson(value)}`;
}
