/** Functions that bake files define: https://docs.docker.com/build/bake/funcs/. */

import { type EvalContext, type HclFunction, withLoopVariables } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { HclError } from "../../../hcl/hcl-error.ts";
import { expressionReferences } from "../../../hcl/syntax/references.ts";
import { type Expression, keywordOf } from "../../../hcl/syntax/tree.ts";
import { dynamicType } from "../../../hcl/values/types.ts";
import { type HclValue, tupleValue } from "../../../hcl/values/value.ts";
import { nearest } from "../../../suggest.ts";
import type { NamedBlock } from "./bodies.ts";
import type { BakeVariables } from "./variables.ts";

/** A function as its block defines it. `rest` takes the remaining arguments as a tuple. */
interface FunctionDefinition {
  block: NamedBlock;
  parameters: readonly string[];
  rest: string | undefined;
  result: Expression;
}

interface DefinedFunctions {
  functionOf(name: string): HclFunction | undefined;
  names: readonly string[];
  /** Throws for a function that calls itself, and for one that uses something unknown, even if it is never called. */
  check(): void;
}

/** Defines functions, except those with the name of one in `library`. `scope`: where results are evaluated. */
export function createFunctions(
  blocks: ReadonlyMap<string, NamedBlock>,
  library: ReadonlyMap<string, HclFunction>,
  variables: () => BakeVariables,
  scope: () => EvalContext,
): DefinedFunctions {
  const definitions = new Map(
    [...blocks].filter(([name]) => !library.has(name)).map(([name, block]) => [name, definitionOf(block)]),
  );
  const made = new Map([...definitions].map(([name, definition]) => [name, functionOf(definition, scope)]));

  function check(name: string, path: readonly string[], checked: Set<string>): void {
    const definition = definitions.get(name);
    if (definition === undefined || checked.has(name)) return;
    const references = expressionReferences(definition.result);
    for (const called of references.functions) {
      const next = [...path, called.name];
      if (next.indexOf(called.name) < next.length - 1)
        throw new HclError(
          `the function ${called.name} calls itself: ${next.slice(next.indexOf(called.name)).join(" -> ")}`,
          called.range,
        );
      if (!library.has(called.name) && !definitions.has(called.name)) {
        const meant = nearest(called.name, [...library.keys(), ...definitions.keys()]);
        throw new HclError(
          `there is no function ${called.name}`,
          called.range,
          meant && `Did you mean ${meant}?`,
        );
      }
      check(called.name, next, checked);
    }
    const own = new Set([...definition.parameters, definition.rest]);
    const used = references.variables.filter(
      (each) => !own.has(each.name) && !["target", "group"].includes(each.name),
    );
    variables().resolve({ variables: used, functions: [] });
    for (const { name: variable, range } of used)
      if (variables().lookUp(variable) === undefined) {
        const meant = nearest(
          variable,
          [...own, ...variables().names()].filter((each) => each !== undefined),
        );
        throw new HclError(`there is no variable ${variable}`, range, meant && `Did you mean ${meant}?`);
      }
    checked.add(name);
  }

  return {
    functionOf: (name) => made.get(name),
    names: [...definitions.keys()],
    check() {
      const checked = new Set<string>();
      for (const name of definitions.keys()) check(name, [name], checked);
    },
  };
}

const fields = ["params", "variadic_params", "result"];

function definitionOf(block: NamedBlock): FunctionDefinition {
  const { attributes, blocks } = block.body;
  const unknown =
    [...attributes.values()].find(({ name }) => !fields.includes(name))?.nameRange ?? blocks[0]?.typeRange;
  if (unknown !== undefined) {
    const name = unknown.source.text.slice(unknown.start, unknown.end).replaceAll('"', "");
    const meant = nearest(name, fields);
    throw new HclError(`unknown field ${name} of a function`, unknown, meant && `Did you mean ${meant}?`);
  }
  const expressionOf = (name: string) => attributes.get(name)?.expression;
  const [params, variadic, result] = fields.map(expressionOf);
  if (params === undefined || result === undefined)
    throw new HclError(
      `the function ${block.name} needs params and result`,
      block.labels[0]?.range,
      "As in: params = [name] and result = upper(name)",
    );
  if (params.kind !== "tuple") throw new HclError("a list of names is required, as in [a, b]", params.range);
  return {
    block,
    parameters: params.elements.map(nameIn),
    rest: variadic === undefined ? undefined : nameIn(variadic),
    result,
  };
}

function nameIn(expression: Expression): string {
  const name = keywordOf(expression);
  if (name === undefined) throw new HclError("a name is required", expression.range, "As in params = [a, b]");
  return name;
}

function functionOf({ parameters, rest, result }: FunctionDefinition, scope: () => EvalContext): HclFunction {
  return {
    parameters: parameters.map((name) => ({ name, type: dynamicType })),
    ...(rest !== undefined && { rest: { name: rest, type: dynamicType } }),
    call(given) {
      const named = new Map<string, HclValue>(
        parameters.flatMap((name, index) => {
          const value = given[index];
          return value === undefined ? [] : [[name, value]];
        }),
      );
      if (rest !== undefined) named.set(rest, tupleValue(given.slice(parameters.length)));
      return evaluate(result, withLoopVariables(scope(), named));
    },
  };
}
