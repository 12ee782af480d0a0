import { ArgumentError, type HclFunction, type Parameter } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { type BigFloat, isInteger, toDouble, truncated } from "../values/big-float.ts";
import { boolType, dynamicType, listOf, numberType, setOf, stringType, typeName } from "../values/types.ts";
import { type HclValue, isSequenceValue, type SequenceValue, stringValue, typeOf } from "../values/value.ts";

export type FunctionTable = Readonly<Record<string, HclFunction>>;

export const text = (name: string): Parameter => ({ name, type: stringType });
export const number = (name: string): Parameter => ({ name, type: numberType });
export const bool = (name: string): Parameter => ({ name, type: boolType });
export const any = (name: string): Parameter => ({ name, type: dynamicType });
export const orNull = (parameter: Parameter): Parameter => ({ ...parameter, allowsNull: true });
export const texts = (name: string): Parameter => ({ name, type: listOf(stringType) });
/** A list whose elements have one type, or can be converted to one. */
export const list = (name: string): Parameter => ({ name, type: listOf(dynamicType) });
export const set = (name: string): Parameter => ({ name, type: setOf(dynamicType) });

type Call = Extract<HclFunction, { call: unknown }>["call"];

export function define(parameters: readonly Parameter[], call: Call): HclFunction {
  return { parameters, call };
}

/** Defines a function with any number of further arguments. */
export function defineVariadic(parameters: readonly Parameter[], rest: Parameter, call: Call): HclFunction {
  return { parameters, rest, call };
}

/** Defines a function from texts to a text. */
export function defineText(names: readonly string[], make: (...given: string[]) => string): HclFunction {
  return define(names.map(text), (given) => stringValue(make(...given.map(textIn))));
}

/** Returns the text of an argument that was converted to one. */
export function textIn(value: HclValue | undefined): string {
  return value?.kind === "string" ? value.text : wrongKind(value, "string");
}

export function numberIn(value: HclValue | undefined): BigFloat {
  return value?.kind === "number" ? value.number : wrongKind(value, "number");
}

export function boolIn(value: HclValue | undefined): boolean {
  return value?.kind === "bool" ? value.isTrue : wrongKind(value, "bool");
}

/** Returns a number as a double, as for logarithms. */
export function doubleIn(value: HclValue | undefined): number {
  return toDouble(numberIn(value));
}

const int64 = 1n << 63n;

/** Returns a whole number. Throws for a fraction, and for one that is too large. */
export function integerIn(given: readonly HclValue[], index: number): number {
  const found = numberIn(given[index]);
  const whole = isInteger(found) ? truncated(found) : undefined;
  if (whole === undefined || whole >= int64 || whole < -int64)
    throw new ArgumentError(index, "a whole number is required");
  return Number(whole);
}

/** Returns the elements of an argument that is a list, a set or a tuple. */
export function elementsIn(value: HclValue | undefined): readonly HclValue[] {
  return sequenceIn(value).elements;
}

export function sequenceIn(value: HclValue | undefined, what = "a list, a set or a tuple"): SequenceValue {
  if (value !== undefined && isSequenceValue(value)) return value;
  throw new HclError(
    `${what} is required, not a ${value === undefined ? "nothing" : typeName(typeOf(value))}`,
  );
}

/** Returns the texts of a list of texts. Throws for a null among them. */
export function textsIn(given: readonly HclValue[], index: number): string[] {
  return elementsIn(given[index]).map((each, position) => {
    if (each.kind === "null") throw new ArgumentError(index, `element ${position} is null`);
    return textIn(each);
  });
}

function wrongKind(value: HclValue | undefined, wanted: string): never {
  throw new HclError(
    `a ${wanted} is required, not ${value === undefined ? "nothing" : typeName(typeOf(value))}`,
  );
}

/** Splits a text into grapheme clusters, which HCL counts as characters. */
export function charactersOf(given: string): string[] {
  // Most texts are ASCII, in which each UTF-16 unit is a cluster, except for \r\n.
  if (/^[\x20-\x7e\t\n]*$/.test(given)) return given.split("");
  return Array.from(segmenter.segment(given), ({ segment }) => segment);
}

const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });
