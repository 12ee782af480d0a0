/** Bake files in HCL and JSON: https://docs.docker.com/build/bake/reference/. */

import { usageError } from "../../../errors.ts";
import { EvalBudget } from "../../../hcl/evaluate/budget.ts";
import type { EvalContext } from "../../../hcl/evaluate/eval-context.ts";
import { type FunctionEnvironment, standardLibrary } from "../../../hcl/functions/table.ts";
import { HclError } from "../../../hcl/hcl-error.ts";
import { excerptError } from "../excerpt.ts";
import type { BakeDefinition } from "../target.ts";
import { createBlocks } from "./blocks.ts";
import { readDeclarations } from "./bodies.ts";
import { createFunctions } from "./functions.ts";
import { createVariables, type VariableInput } from "./variables.ts";

interface BakeSource {
  name: string;
  text: string;
  isJson: boolean;
}

/** Reads bake files, which may use variables, functions and targets of each other. Throws a usage BoughError for what is invalid. */
export function readBakeSources(
  files: readonly BakeSource[],
  input: VariableInput & FunctionEnvironment,
): BakeDefinition {
  try {
    return read(files, input);
  } catch (error) {
    if (!(error instanceof HclError)) throw error;
    const { message, range, hint } = error;
    throw range === undefined ? usageError(message, hint) : excerptError(range, message, hint, error);
  }
}

function read(files: readonly BakeSource[], input: VariableInput & FunctionEnvironment): BakeDefinition {
  const declarations = readDeclarations(files, new Set(Object.keys(input.builtIn)), input.warn);
  const library = standardLibrary(input);
  const variables = createVariables(declarations, input, () => scope);
  const functions = createFunctions(
    declarations.functions,
    library,
    () => variables,
    () => scope,
  );
  const blocks = createBlocks(declarations.blocks, variables, () => scope, input.warn);
  const scope: EvalContext = {
    lookUp: (name, reference) =>
      name === "target" || name === "group" ? blocks.lookUp(reference) : variables.lookUp(name),
    names: () => [...variables.names(), "target", "group"],
    functionOf: (name) => library.get(name) ?? functions.functionOf(name),
    functionNames: () => [...library.keys(), ...functions.names],
    budget: new EvalBudget(),
  };
  functions.check();
  const shown = variables.check();
  return { ...blocks.readAll(), variables: shown };
}
