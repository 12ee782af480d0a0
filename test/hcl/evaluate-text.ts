import { EvalBudget } from "../../src/hcl/evaluate/budget.ts";
import type { EvalContext } from "../../src/hcl/evaluate/eval-context.ts";
import { evaluate } from "../../src/hcl/evaluate/evaluate.ts";
import { standardLibrary } from "../../src/hcl/functions/table.ts";
import { parseExpressionText } from "../../src/hcl/syntax/parse-expression.ts";
import { jsonTextOf, parseJsonText, valueOfJson } from "../../src/hcl/values/json-text.ts";

const library = standardLibrary({ now: () => new Date("2026-01-31T15:04:05Z"), homeDirectory: "/home/user" });

/** Evaluates an expression with variables, and returns its value as JSON. */
export function evaluateText(
  text: string,
  variables: Readonly<Record<string, unknown>> = {},
  budget = new EvalBudget(),
): string {
  const scope: EvalContext = {
    lookUp: (name) =>
      Object.hasOwn(variables, name)
        ? valueOfJson(parseJsonText(JSON.stringify(variables[name])))
        : undefined,
    names: () => Object.keys(variables),
    functionOf: (name) => library.get(name),
    functionNames: () => library.keys(),
    budget,
  };
  return jsonTextOf(evaluate(parseExpressionText({ name: "test.hcl", text }), scope));
}
