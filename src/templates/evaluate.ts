/** Evaluates pipelines of templates. */
import { CallError } from "./call-error.ts";
import type { Functions } from "./functions.ts";
import { type CommandNode, type Operand, type PipeNode, textOfCommand, textOfOperand } from "./nodes.ts";
import { TemplateError } from "./template-error.ts";
import { GoMap, type GoMethod, GoNil, GoStruct, GoText, type GoValue, goTypeOf, isTruthy } from "./values.ts";

/** The result for a key that a map lacks, and for each field of that. It becomes nil wherever a value is needed. */
const missing = Symbol("missing");
type Result = GoValue | typeof missing;

type Called = NonNullable<Functions[string]>;

interface Variable {
  name: string;
  value: GoValue;
}

interface Evaluator {
  /** @param binds false for the pipeline of a range, whose variables are those of each item */
  evaluate(pipe: PipeNode, dot: GoValue, binds?: boolean): GoValue;
  bind(name: string, value: GoValue, pipe: Pick<PipeNode, "assigns">): void;
  /** Runs `work`. Variables that it declares end with it. */
  scoped<Done>(work: () => Done): Done;
  /** Runs `work` with `$` as the only variable. */
  within<Done>(data: GoValue, work: () => Done): Done;
  fail(at: number, context: string, message: string): TemplateError;
  /** Returns an error at the operand that was evaluated last. */
  failAtLatest(message: string): TemplateError;
}

export function createEvaluator(text: string, functions: Functions): Evaluator {
  const variables = createVariables();
  /** The operand that was evaluated last. Go reports the errors of `(pipeline).Field` there. */
  let latest: Operand | undefined;

  const fail: Evaluator["fail"] = (at, context, message) => errorIn(text, at, context, message);
  const failAt = (operand: Operand) => (message: string) => fail(operand.at, textOfOperand(operand), message);
  const failAtLatest = (message: string) =>
    latest === undefined ? fail(0, ".", message) : failAt(latest)(message);

  function bind(name: string, value: GoValue, { assigns }: Pick<PipeNode, "assigns">): void {
    if (!assigns) variables.declare(name, value);
    else if (!variables.assign(name, value)) throw failAtLatest(`undefined variable: $${name}`);
  }

  function evaluate(pipe: PipeNode, dot: GoValue, binds = true): Result {
    let value: Result | undefined;
    for (const command of pipe.commands) value = evaluateCommand(command, dot, value);
    const result = value ?? null;
    if (binds) for (const name of pipe.variables) bind(name, known(result), pipe);
    return result;
  }

  function evaluateCommand(command: CommandNode, dot: GoValue, final: Result | undefined): Result {
    const [first, ...rest] = command.operands;
    if (first === undefined) return null;
    if (first.kind === "word") return callFunction(first.name, command, rest, dot, final);
    const args = () => [
      ...rest.map((each) => known(evaluateOperand(each, dot))),
      ...(final === undefined ? [] : [known(final)]),
    ];
    if (first.kind === "field" || first.kind === "variable" || first.kind === "chain")
      return evaluateOperand(first, dot, rest.length > 0 || final !== undefined ? args() : undefined);
    if (rest.length > 0 || final !== undefined)
      throw failAt(first)(`can't give argument to non-function ${textOfOperand(first)}`);
    if (first.kind === "nil") throw fail(first.at, textOfCommand(command), "nil is not a command");
    return evaluateOperand(first, dot);
  }

  function callFunction(
    name: string,
    command: CommandNode,
    rest: readonly Operand[],
    dot: GoValue,
    final: Result | undefined,
  ): Result {
    const called = functions[name];
    if (called === undefined)
      throw fail(command.at, name, `${JSON.stringify(name)} is not a defined function`);
    const steps: (() => GoValue)[] = rest.map((each) => () => known(evaluateOperand(each, dot)));
    if (final !== undefined) steps.push(() => known(final));
    const problem = wrongCount(name, called, steps.length);
    if (problem !== undefined) throw fail(command.at, name, problem);
    try {
      return applied(called, steps);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      throw fail(command.at, textOfCommand(command), `error calling ${name}: ${error.message}`);
    }
  }

  function evaluateOperand(operand: Operand, dot: GoValue, args?: readonly GoValue[]): Result {
    if (operand.kind !== "pipe" && operand.kind !== "chain") latest = operand;
    switch (operand.kind) {
      case "dot":
        return dot;
      case "nil":
        return null;
      case "boolean":
      case "number":
      case "string":
        return operand.value;
      case "word":
        return callFunction(operand.name, { operands: [operand], at: operand.at }, [], dot, undefined);
      case "pipe":
        return evaluate(operand.pipe, dot);
      case "field":
        return fieldsOf(dot, operand.names, args, failAt(operand));
      case "variable": {
        const value = variables.get(operand.name) ?? null;
        if (operand.names.length > 0) return fieldsOf(value, operand.names, args, failAt(operand));
        if (args !== undefined)
          throw failAt(operand)(`can't give argument to non-function ${textOfOperand(operand)}`);
        return value;
      }
      case "chain": {
        const value = known(evaluateOperand(operand.of, dot));
        return fieldsOf(value, operand.names, args, failAt(latest ?? operand));
      }
    }
  }

  return {
    evaluate: (pipe, dot, binds) => known(evaluate(pipe, dot, binds)),
    bind,
    scoped: variables.scoped,
    within: variables.within,
    fail,
    failAtLatest,
  };
}

/** Creates the variables, each of which is known until its block ends. */
function createVariables() {
  let variables: Variable[] = [];
  const find = (name: string) => variables.findLast((each) => each.name === name);
  return {
    get: (name: string) => find(name)?.value,
    declare(name: string, value: GoValue): void {
      variables.push({ name, value });
    },
    /** Returns false if there is no such variable. */
    assign(name: string, value: GoValue): boolean {
      const known = find(name);
      if (known !== undefined) known.value = value;
      return known !== undefined;
    },
    scoped<Done>(work: () => Done): Done {
      const before = variables.length;
      const done = work();
      variables.length = before;
      return done;
    },
    within<Done>(data: GoValue, work: () => Done): Done {
      const before = variables;
      variables = [{ name: "", value: data }];
      const done = work();
      variables = before;
      return done;
    },
  };
}

function known(result: Result): GoValue {
  return result === missing ? null : result;
}

/** Returns what is wrong with the number of arguments. */
function wrongCount(name: string, { min, max = min }: Called, given: number): string | undefined {
  if (given >= min && given <= max) return undefined;
  const wanted = max === Number.POSITIVE_INFINITY ? `at least ${min}` : String(min);
  return `wrong number of args for ${name}: want ${wanted} got ${given}`;
}

/** Calls a function. `and` and `or` evaluate no more arguments than they need. */
function applied(called: Called, args: readonly (() => GoValue)[]): GoValue {
  if (called.endsAt === undefined) return called.call(args.map((arg) => arg()));
  let value: GoValue = null;
  for (const arg of args) {
    value = arg();
    if (isTruthy(value) === called.endsAt) break;
  }
  return value;
}

/** Go counts lines from 1, and bytes of a line from 0. */
function errorIn(text: string, at: number, context: string, message: string): TemplateError {
  const lines = text.slice(0, at).split("\n");
  const column = Buffer.byteLength(lines.at(-1) ?? "");
  return new TemplateError(`template: :${lines.length}:${column}: executing "" at <${context}>: ${message}`);
}

/** Returns a field of a field. `args`: those of a method, which is the last one. */
function fieldsOf(
  from: GoValue,
  names: readonly string[],
  args: readonly GoValue[] | undefined,
  refuse: (message: string) => TemplateError,
): Result {
  let value: Result = from;
  for (const [at, name] of names.entries())
    value = fieldOf(value, name, at === names.length - 1 ? args : undefined, refuse);
  return value;
}

/** @param args those of a method; `undefined` if there are none */
function fieldOf(
  of: Result,
  name: string,
  args: readonly GoValue[] | undefined,
  refuse: (message: string) => TemplateError,
): Result {
  if (of === missing) return missing;
  if (of === null) throw refuse(`nil pointer evaluating interface {}.${name}`);
  const method = methodOf(of, name);
  if (method !== undefined) return method(...(args ?? []));
  const value = memberOf(of, name);
  if (value !== undefined && args !== undefined)
    throw refuse(
      of instanceof GoMap
        ? `${name} is not a method but has arguments`
        : `${name} has arguments but cannot be invoked as function`,
    );
  if (value !== undefined) return value;
  if (of instanceof GoNil && of.kind === "map") return missing;
  if (of instanceof GoNil && of.kind === "pointer") throw refuse(`nil pointer evaluating ${of.type}.${name}`);
  throw refuse(`can't evaluate field ${name} in type ${goTypeOf(of)}`);
}

/** Returns an entry of a map or a field of a struct; `undefined` if the struct has no such field, or if it is something else. */
function memberOf(of: GoValue, name: string): Result | undefined {
  if (of instanceof GoMap) return of.entries.has(name) ? (of.entries.get(name) ?? null) : missing;
  return of instanceof GoStruct ? of.get(name) : undefined;
}

function methodOf(of: GoValue, name: string): GoMethod | undefined {
  if (!(of instanceof GoStruct || of instanceof GoText) || !Object.hasOwn(of.methods, name)) return undefined;
  return of.methods[name];
}
