/** Instances of blocks: one target for each combination of the values of `matrix`. */

import { type EvalContext, withLoopVariables } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { HclError, located } from "../../../hcl/hcl-error.ts";
import type { Range } from "../../../hcl/source.ts";
import { expressionReferences } from "../../../hcl/syntax/references.ts";
import type { Expression } from "../../../hcl/syntax/tree.ts";
import { convert, textOf } from "../../../hcl/values/conversion.ts";
import { stringType } from "../../../hcl/values/types.ts";
import { elementsOf, type HclValue, isMappingValue } from "../../../hcl/values/value.ts";
import { isTargetName } from "../target-names.ts";
import type { NamedBlock } from "./bodies.ts";
import type { BakeVariables } from "./variables.ts";

export interface Instance {
  name: string;
  block: NamedBlock;
  /** The variables of the files, and the values of `matrix`. */
  scope: EvalContext;
}

/** The maximum number of targets of a matrix: more than anybody builds at once, and fewer than fill the memory. */
const maxCombinations = 100_000;

/** Returns the instances of a block. Throws for an invalid name, and for two instances with one name. */
export function instancesOf(block: NamedBlock, scope: EvalContext, { resolve }: BakeVariables): Instance[] {
  const { range = block.typeRange } = block.labels[0] ?? {};
  requireValidName(block.name, range);
  const expressionOf = (name: string) => block.body.attributes.get(name)?.expression;
  const [matrix, named] = [expressionOf("matrix"), expressionOf("name")];
  if (block.type === "group" && (matrix ?? named) !== undefined)
    throw new HclError("a group can't have matrix or name", (matrix ?? named)?.range);
  if (matrix === undefined) {
    if (named !== undefined) throw new HclError("name needs matrix", named.range);
    return [{ name: block.name, block, scope }];
  }
  for (const each of [matrix, named]) if (each !== undefined) resolve(expressionReferences(each));
  const instances = combinationsOf(matrix, scope).map((combination): Instance => {
    const within = combination.size === 0 ? scope : withLoopVariables(scope, combination);
    return { name: named === undefined ? block.name : nameOf(named, within), block, scope: within };
  });
  const names = new Set<string>();
  for (const { name } of instances) {
    if (names.has(name))
      throw new HclError(
        `the matrix makes two targets with the name ${name}`,
        named?.range ?? range,
        named === undefined ? 'matrix needs name, as in name = "app-${version}".' : undefined,
      );
    names.add(name);
  }
  return instances;
}

function combinationsOf(matrix: Expression, scope: EvalContext): ReadonlyMap<string, HclValue>[] {
  const value = evaluate(matrix, scope);
  if (!isMappingValue(value))
    throw new HclError("a matrix is a map of lists", matrix.range, 'As in matrix = { version = ["1", "2"] }');
  let combinations: ReadonlyMap<string, HclValue>[] = [new Map()];
  for (const [axis, values] of value.entries) {
    const elements = elementsOf(values);
    if (elements === undefined) throw new HclError(`matrix: ${axis} must be a list`, matrix.range);
    if (combinations.length * elements.length > maxCombinations)
      throw new HclError(`the matrix makes more than ${maxCombinations} targets`, matrix.range);
    combinations = combinations.flatMap((before) =>
      elements.map((each) => new Map([...before, [axis, each.value]])),
    );
  }
  return combinations;
}

function nameOf(named: Expression, scope: EvalContext): string {
  const value = evaluate(named, scope);
  if (value.kind === "null") throw new HclError("the name must not be null", named.range);
  const name = located(named.range, () => textOf(convert(value, stringType)));
  requireValidName(name, named.range);
  return name;
}

function requireValidName(name: string, range: Range): void {
  if (!isTargetName(name))
    throw new HclError(
      `invalid name ${JSON.stringify(name)}: letters, digits, _ and - are allowed`,
      range,
      "sanitize(text) replaces all other characters by _.",
    );
}
