/** The functions that each template has: https://pkg.go.dev/text/template#hdr-Functions */
import { CallError } from "./call-error.ts";
import { equalInGo, lessInGo } from "./compare.ts";
import { sprint, sprintf } from "./printf.ts";
import { GoMap, GoNil, GoText, type GoValue, goTypeOf, isTruthy, lengthOf } from "./values.ts";

interface TemplateFunction {
  /** The number of arguments. `max` defaults to `min`. */
  min: number;
  max?: number;
  call(args: readonly GoValue[]): GoValue;
  /** Set for `and` and `or`: an argument of this truth ends the evaluation, and is the result. */
  endsAt?: boolean;
}

export type Functions = Readonly<Record<string, TemplateFunction>>;

const any = Number.POSITIVE_INFINITY;

/** A function of texts. */
export function ofTexts(count: number, call: (...texts: string[]) => GoValue): TemplateFunction {
  return { min: count, call: (args) => call(...args.map(requireText)) };
}

export function requireText(value: GoValue): string {
  if (typeof value === "string") return value;
  if (value instanceof GoText) return value.text;
  throw new CallError(`wrong type for value; expected string; got ${goTypeOf(value)}`);
}

function requireInteger(value: GoValue): number {
  if (typeof value === "bigint") return Number(value);
  throw new CallError(`cannot index slice/array with type ${goTypeOf(value)}`);
}

const last = (args: readonly GoValue[]): GoValue => args.at(-1) ?? null;
const sprintln = (args: readonly GoValue[]) => `${args.map((each) => sprint([each])).join(" ")}\n`;

export const builtinFunctions: Functions = {
  and: { min: 1, max: any, call: last, endsAt: false },
  or: { min: 1, max: any, call: last, endsAt: true },
  not: { min: 1, call: ([value = null]) => !isTruthy(value) },
  len: {
    min: 1,
    call([value = null]) {
      const length = lengthOf(value);
      if (length !== undefined) return BigInt(length);
      throw new CallError(
        value === null
          ? "reflect: call of reflect.Value.Type on zero Value"
          : `len of type ${goTypeOf(value)}`,
      );
    },
  },
  index: { min: 1, max: any, call: ([value = null, ...keys]) => keys.reduce(itemAt, value) },
  slice: { min: 1, max: 4, call: slice },
  print: { min: 0, max: any, call: sprint },
  println: { min: 0, max: any, call: sprintln },
  printf: { min: 1, max: any, call: ([format = "", ...args]) => sprintf(requireText(format), args) },
  html: { min: 0, max: any, call: (args) => escapeHtml(sprint(args)) },
  js: { min: 0, max: any, call: (args) => escapeJs(sprint(args)) },
  urlquery: {
    min: 0,
    max: any,
    call: (args) =>
      encodeURIComponent(sprint(args))
        .replace(/%20/g, "+")
        .replace(/[!'()*]/g, percent),
  },
  call: {
    min: 1,
    max: any,
    call([value = null]) {
      throw new CallError(`non-function of type ${goTypeOf(value)}`);
    },
  },
  eq: {
    min: 1,
    max: any,
    call([one = null, ...others]) {
      if (others.length === 0) throw new CallError("missing argument for comparison");
      return others.some((other) => equalInGo(one, other));
    },
  },
  ne: { min: 2, call: ([one = null, other = null]) => !equalInGo(one, other) },
  lt: { min: 2, call: ([one = null, other = null]) => lessInGo(one, other) },
  le: { min: 2, call: ([one = null, other = null]) => lessInGo(one, other) || equalInGo(one, other) },
  gt: { min: 2, call: ([one = null, other = null]) => !lessInGo(one, other) && !equalInGo(one, other) },
  ge: { min: 2, call: ([one = null, other = null]) => !lessInGo(one, other) },
};

function itemAt(value: GoValue, key: GoValue): GoValue {
  if (value === null) throw new CallError("index of untyped nil");
  if (value instanceof GoMap) {
    if (typeof key !== "string" && !(key instanceof GoText))
      throw new CallError(
        key === null
          ? "value is nil; should be of type string"
          : `value has type ${goTypeOf(key)}; should be string`,
      );
    return value.entries.get(requireText(key)) ?? value.zero;
  }
  if (value instanceof GoNil && value.kind === "map") return null;
  if (value instanceof GoNil && value.kind === "pointer") throw new CallError("index of nil pointer");
  const isText = typeof value === "string" || value instanceof GoText;
  if (!Array.isArray(value) && !isText && !(value instanceof GoNil))
    throw new CallError(`can't index item of type ${goTypeOf(value).replace(/^\*/, "")}`);
  if (key === null) throw new CallError("cannot index slice/array with nil");
  const at = requireInteger(key);
  const items = isText ? [...Buffer.from(requireText(value))].map(BigInt) : listOf(value);
  const item = at < 0 ? undefined : items[at];
  if (item === undefined)
    throw new CallError(isText ? "reflect: string index out of range" : `index out of range: ${at}`);
  return item;
}

function listOf(value: GoValue): readonly GoValue[] {
  return Array.isArray(value) ? value : [];
}

function slice([value = null, ...bounds]: readonly GoValue[]): GoValue {
  if (value === null) throw new CallError("slice of untyped nil");
  const isText = typeof value === "string" || value instanceof GoText;
  if (isText && bounds.length === 3) throw new CallError("cannot 3-index slice a string");
  if (!isText && !Array.isArray(value) && !(value instanceof GoNil && value.kind === "slice"))
    throw new CallError(`can't slice item of type ${goTypeOf(value)}`);
  const length = lengthOf(value) ?? 0;
  const [start = 0, end = length, capacity = length] = bounds.map(requireInteger);
  for (const bound of [start, end, capacity])
    if (bound < 0 || bound > length) throw new CallError(`index out of range: ${bound}`);
  if (start > end) throw new CallError(`invalid slice index: ${start} > ${end}`);
  if (end > capacity) throw new CallError(`invalid slice index: ${end} > ${capacity}`);
  return isText
    ? Buffer.from(requireText(value)).subarray(start, end).toString()
    : listOf(value).slice(start, end);
}

const entities: Readonly<Record<string, string>> = {
  ...{ "\0": "\uFFFD", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;" },
};

function escapeHtml(text: string): string {
  return text.replace(/[\0"'&<>]/g, (character) => entities[character] ?? character);
}

function escapeJs(text: string): string {
  return text.replace(/[\\'"<>&=]|[\0-\x1f]/g, (character) => {
    if (/[\\'"]/.test(character)) return `\\${character}`;
    return `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  });
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
