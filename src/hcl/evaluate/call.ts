import { nearest } from "../../suggest.ts";
import { HclError, HclLimitError, locate, located } from "../hcl-error.ts";
import type { Range } from "../source.ts";
import type { Expression } from "../syntax/tree.ts";
import { convert } from "../values/conversion.ts";
import { type HclValue, isSequenceValue } from "../values/value.ts";
import {
  ArgumentError,
  type EvalContext,
  type Evaluate,
  type HclFunction,
  type Parameter,
} from "./eval-context.ts";

type Call = Extract<Expression, { kind: "call" }>;

/** Calls a function. An error is located at the argument that it is about, otherwise at the call. */
export function evaluateCall(call: Call, context: EvalContext, evaluate: Evaluate): HclValue {
  const called = context.functionOf(call.name);
  if (called === undefined) {
    const meant = nearest(call.name, context.functionNames());
    throw new HclError(
      `there is no function ${call.name}`,
      call.nameRange,
      meant === undefined ? "`bough help contexts` lists the functions." : `Did you mean ${meant}?`,
    );
  }
  if ("evaluateCall" in called)
    return located(call.range, () => called.evaluateCall(call.arguments, (each) => evaluate(each, context)));
  const given = argumentsOf(call, context, evaluate);
  requireCount(call, called, given);
  const values = given.map(({ value, range }, index) => {
    const parameter = called.parameters[index] ?? called.rest;
    return parameter === undefined ? value : converted(value, parameter, range);
  });
  for (const value of values) context.budget.spendOn(value);
  try {
    return context.budget.spendOn(called.call(values, context.budget));
  } catch (error) {
    const at = error instanceof ArgumentError ? given[error.index]?.range : undefined;
    throw locate(withName(error, call.name), at ?? call.range);
  }
}

function withName(error: unknown, name: string): unknown {
  if (!(error instanceof HclError) || error instanceof HclLimitError || error.range !== undefined)
    return error;
  return new HclError(`${name}: ${error.message}`, undefined, error.hint);
}

function argumentsOf(
  call: Call,
  context: EvalContext,
  evaluate: Evaluate,
): { value: HclValue; range: Range }[] {
  const given = call.arguments.map((each) => ({ value: evaluate(each, context), range: each.range }));
  const last = given.at(-1);
  if (!call.expandsLast || last === undefined) return given;
  const { value, range } = last;
  if (!isSequenceValue(value)) throw new HclError("a list is required before ...", range);
  return [...given.slice(0, -1), ...value.elements.map((each) => ({ value: each, range }))];
}

function requireCount(
  call: Call,
  { parameters, rest }: Extract<HclFunction, { parameters: unknown }>,
  given: readonly { range: Range }[],
): void {
  const { length } = parameters;
  const missing = parameters[given.length];
  if (missing === undefined && (rest !== undefined || given.length === length)) return;
  const shown = [...parameters.map(({ name }) => name), ...(rest === undefined ? [] : [`${rest.name}...`])];
  const hint = `${call.name}(${shown.join(", ")})`;
  if (missing !== undefined)
    throw new HclError(`${call.name}: the argument ${missing.name} is missing`, call.range, hint);
  throw new HclError(
    `${call.name} has ${length === 0 ? "no arguments" : `${length} argument${length === 1 ? "" : "s"}`}`,
    given[length]?.range,
    hint,
  );
}

function converted(value: HclValue, { name, type, allowsNull }: Parameter, range: Range): HclValue {
  const result = located(range, () => {
    try {
      return convert(value, type);
    } catch (error) {
      if (error instanceof HclError) throw new HclError(`invalid value for ${name}: ${error.message}`);
      throw error;
    }
  });
  if (result.kind !== "null" || allowsNull) return result;
  throw new HclError(`invalid value for ${name}: it must not be null`, range);
}
