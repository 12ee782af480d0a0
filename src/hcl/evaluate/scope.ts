import { HclError } from "../hcl-error.ts";
import type { Expression } from "../syntax/tree.ts";
import type { Type } from "../values/types.ts";
import type { Value } from "../values/value.ts";
import type { Budget } from "./budget.ts";

/** What an expression may use. */
export interface Scope {
  /** Returns the value of a variable, of which `expression` is evaluated: some have parts that are made one by one. */
  lookUp(name: string, expression: Extract<Expression, { kind: "variable" }>): Value | undefined;
  /** The names of all variables, for suggestions. */
  names(): Iterable<string>;
  functionOf(name: string): HclFunction | undefined;
  functionNames(): Iterable<string>;
  /** The element that a splat is at. */
  item?: Value;
  budget: Budget;
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
      /** Of all further arguments. */
      rest?: Parameter;
      call(given: readonly Value[], budget: Budget): Value;
    }
  | {
      /** Gets expressions, as `try` does, of which it evaluates those that it needs. */
      evaluateCall(given: readonly Expression[], evaluate: (expression: Expression) => Value): Value;
    };

export type Evaluate = (expression: Expression, scope: Scope) => Value;

/** The error of a function for one of its arguments. */
export class ArgumentError extends HclError {
  readonly index: number;

  constructor(index: number, message: string, hint?: string) {
    super(message, undefined, hint);
    this.index = index;
  }
}

/** Returns a scope with more variables. */
export function withVariables(scope: Scope, variables: ReadonlyMap<string, Value>): Scope {
  return {
    ...scope,
    lookUp: (name, expression) => variables.get(name) ?? scope.lookUp(name, expression),
    names: () => [...variables.keys(), ...scope.names()],
  };
}
