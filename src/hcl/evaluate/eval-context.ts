import { HclError } from "../hcl-error.ts";
import type { Expression } from "../syntax/tree.ts";
import type { Type } from "../values/types.ts";
import type { HclValue } from "../values/value.ts";
import type { EvalBudget } from "./budget.ts";

/** The variables and functions that an expression may use. */
export interface EvalContext {
  /** Returns the value of a variable. `expression`: the whole reference, as some variables evaluate only the part that it names. */
  lookUp(name: string, expression: Extract<Expression, { kind: "variable" }>): HclValue | undefined;
  /** The names of all variables, for suggestions. */
  names(): Iterable<string>;
  functionOf(name: string): HclFunction | undefined;
  functionNames(): Iterable<string>;
  /** The current element of a splat. */
  item?: HclValue;
  budget: EvalBudget;
}

export interface Parameter {
  name: string;
  /** Arguments are converted to it. */
  type: Type;
  allowsNull?: boolean;
}

export type HclFunction =
  | {
      parameters: readonly Parameter[];
      /** The parameter that all further arguments have. */
      rest?: Parameter;
      call(given: readonly HclValue[], budget: EvalBudget): HclValue;
    }
  | {
      /** Gets its arguments as expressions, and evaluates only those that it needs, as `try` does. */
      evaluateCall(given: readonly Expression[], evaluate: (expression: Expression) => HclValue): HclValue;
    };

export type Evaluate = (expression: Expression, context: EvalContext) => HclValue;

/** The error of a function for one of its arguments. */
export class ArgumentError extends HclError {
  readonly index: number;

  constructor(index: number, message: string, hint?: string) {
    super(message, undefined, hint);
    this.index = index;
  }
}

/** Returns a context with more variables. */
export function withLoopVariables(
  context: EvalContext,
  variables: ReadonlyMap<string, HclValue>,
): EvalContext {
  return {
    ...context,
    lookUp: (name, expression) => variables.get(name) ?? context.lookUp(name, expression),
    names: () => [...variables.keys(), ...context.names()],
  };
}
