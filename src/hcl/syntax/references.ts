import type { Range } from "../source.ts";
import type { Expression, TraversalStep } from "./tree.ts";

/** The variables and functions that an expression names, except the variables of its own loops. */
export interface References {
  variables: readonly { name: string; steps: readonly TraversalStep[]; range: Range }[];
  functions: readonly { name: string; range: Range }[];
}

export function expressionReferences(expression: Expression): References {
  const variables: References["variables"][number][] = [];
  const functions: References["functions"][number][] = [];
  const left: { each: Expression; own: ReadonlySet<string> }[] = [{ each: expression, own: new Set() }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { each, own } = next;
    if (each.kind === "variable" && !own.has(each.name))
      variables.push({ name: each.name, steps: each.steps, range: each.range });
    if (each.kind === "call") functions.push({ name: each.name, range: each.nameRange });
    const within =
      each.kind === "for" ? new Set([...own, each.valueName, each.keyName ?? each.valueName]) : own;
    // The last one is taken first.
    for (const part of partsOf(each).reverse())
      left.push({ each: part, own: each.kind === "for" && part === each.from ? own : within });
  }
  return { variables, functions };
}

/** Returns the expressions directly in one. */
function partsOf(expression: Expression): Expression[] {
  switch (expression.kind) {
    case "literal":
    case "variable":
    case "item":
      return [];
    case "template":
      return [...expression.parts];
    case "group":
      return [expression.inner];
    case "access":
      return [expression.from];
    case "index":
      return [expression.from, expression.key];
    case "splat":
      return [expression.from, expression.each];
    case "call":
      return [...expression.arguments];
    case "unary":
      return [expression.operand];
    case "binary":
      return [expression.left, expression.right];
    case "conditional":
      return [expression.condition, expression.whenTrue, expression.whenFalse];
    case "tuple":
      return [...expression.elements];
    case "object":
      return expression.entries.flatMap(({ key, value, isForced }) =>
        isNameOnly(key, isForced) ? [value] : [key, value],
      );
    case "for":
      return [expression.from, expression.key, expression.value, expression.condition].filter(
        (part) => part !== undefined,
      );
    case "joined":
      return [expression.each];
    case "json text":
      return partsOfText(expression);
  }
}

function isNameOnly(key: Expression, isForced: boolean): boolean {
  return !isForced && key.kind === "variable" && key.steps.length === 0;
}

function partsOfText({ parse }: Extract<Expression, { kind: "json text" }>): Expression[] {
  try {
    return [parse()];
  } catch {
    // Evaluating it has the same error, if it is needed.
    return [];
  }
}
