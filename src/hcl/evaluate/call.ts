import { nearest } from "../../suggest.ts";
import { HclError, locate, located } from "../hcl-error.ts";
import type { Range } from "../source.ts";
import type { Expression } from "../syntax/tree.ts";
import { convert } from "../values/conversion.ts";
import { isSequenceValue, type Value } from "../values/value.ts";
import { ArgumentError, type Evaluate, type HclFunction, type Parameter, type Scope } from "./scope.ts";

type Call = Extract<Expression, { kind: "call" }>;

/** Calls a function. Its errors are at the argument that they are about, if they say, or at the call. */
export function evaluateCall(call: Call, scope: Scope, evaluate: Evaluate): Value {
  const called = scope.functionOf(call.name);
  if (called === undefined) {
    const meant = nearest(call.name, scope.functionNames());
    throw new HclError(
      `there is no function ${call.name}`,
      call.nameRange,
      meant === undefined ? "`bough help contexts` lists the functions." : `Did you mean ${meant}?`,
    );
  }
  if ("evaluateCall" in called)
    return located(call.range, () => called.evaluateCall(call.arguments, (each) => evaluate(each, scope)));
  const given = argumentsOf(call, scope, evaluate);
  requireCount(call, called, given);
  const values = given.map(({ value, range }, index) => {
    const parameter = called.parameters[index] ?? called.rest;
    return parameter === undefined ? value : converted(value, parameter, range);
  });
  for (const value of values) scope.budget.spendOn(value);
  try {
    return scope.budget.spendOn(called.call(values, scope.budget));
  } catch (error) {
    const at = error instanceof ArgumentError ? given[error.index]?.range : undefined;
    throw locate(withName(error, call.name), at ?? call.range);
  }
}

function withName(error: unknown, name: string): unknown {
  if (!(error instanceof HclError) || error.range !== undefined) return error;
  return error instanceof ArgumentError
    ? new HclError(`${name}: ${error.message}`, undefined, error.hint)
    : error.constructor === HclError
      ? new HclError(`${name}: ${error.message}`, undefined, error.hint)
      : error;
}

function argumentsOf(call: Call, scope: Scope, evaluate: Evaluate): { value: Value; range: Range }[] {
  const given = call.arguments.map((each) => ({ value: evaluate(each, scope), range: each.range }));
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

function converted(value: Value, { name, type, allowsNull }: Parameter, range: Range): Value {
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
