import type { EvalContext } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { isTrue } from "../../../hcl/evaluate/operators.ts";
import { typeNamed } from "../../../hcl/functions/type-expressions.ts";
import { HclError, located } from "../../../hcl/hcl-error.ts";
import { expressionReferences, type References } from "../../../hcl/syntax/references.ts";
import type { Expression, HclBlock } from "../../../hcl/syntax/tree.ts";
import { convert, textOf } from "../../../hcl/values/conversion.ts";
import { type JsonNode, jsonTextOf, jsonTextOfType, valueOfJson } from "../../../hcl/values/json-text.ts";
import {
  constraintName,
  dynamicType,
  isPrimitive,
  stringType,
  type Type,
} from "../../../hcl/values/types.ts";
import {
  compareTexts,
  type HclValue,
  nullOf,
  nullValue,
  stringValue,
  typeOf,
} from "../../../hcl/values/value.ts";
import type { ListedVariable } from "../target.ts";
import type { Declarations, NamedBlock } from "./bodies.ts";
import { valueOfText } from "./environment-values.ts";
import { constantText, warnOfUnknown } from "./fields.ts";

export interface VariableInput {
  /** Returns the value that replaces a variable's default; `undefined` if there is none. */
  valueOf(name: string): string | undefined;
  /** Values of `--var-file`, which replace all others. */
  tables: ReadonlyMap<string, JsonNode>;
  /** Built-in variables. */
  builtIn: Readonly<Record<string, string>>;
  warn(message: string): void;
}

export interface BakeVariables {
  /** Returns the value of a variable or a constant, if there is one. */
  lookUp(name: string): HclValue | undefined;
  names(): Iterable<string>;
  /** Evaluates all variables, and runs their validations. Returns them as `--list=variables` shows them. */
  check(): ListedVariable[];
  /** Evaluates all references of an expression: a cycle is an error even where its value is not needed. */
  resolve(references: References): void;
}

const variableFields = ["default", "type", "description", "validation"];

/** Returns variables that are evaluated when they are needed. `scope`: where defaults are evaluated. */
export function createVariables(
  { constants, variables }: Declarations,
  { valueOf, tables, builtIn, warn }: VariableInput,
  scope: () => EvalContext,
): BakeVariables {
  const values = new Map<string, HclValue>(
    Object.entries(builtIn).map(([name, text]) => [name, stringValue(text)]),
  );
  const underWay: string[] = [];

  function lookUp(name: string): HclValue | undefined {
    const known = values.get(name);
    if (known !== undefined) return known;
    const constant = constants.get(name);
    const variable = variables.get(name);
    if (constant === undefined && variable === undefined) return undefined;
    if (underWay.includes(name)) {
      const path = [...underWay.slice(underWay.indexOf(name)), name].join(" -> ");
      throw new HclError(`the variable ${name} depends on itself: ${path}`);
    }
    underWay.push(name);
    try {
      const value =
        constant === undefined || variable !== undefined
          ? valueOfVariable(name, variable)
          : valueOfExpression(constant.expression);
      values.set(name, value);
      return value;
    } finally {
      underWay.pop();
    }
  }

  function valueOfExpression(expression: Expression): HclValue {
    resolve(expressionReferences(expression));
    return evaluate(expression, scope());
  }

  function resolve({ variables: references }: References): void {
    for (const { name, range } of references) located(range, () => lookUp(name));
  }

  function valueOfVariable(name: string, block: NamedBlock | undefined): HclValue {
    // As in buildx, a constant of the same name comes before the default, and the environment before both.
    const constant = constants.get(name);
    const type = constant === undefined ? typeOfVariable(block) : undefined;
    const expression = constant?.expression ?? block?.body.attributes.get("default")?.expression;
    const table = tables.get(name);
    if (table !== undefined && block !== undefined)
      return located(block.labels[0]?.range ?? block.typeRange, () =>
        convert(valueOfJson(table), type ?? dynamicType),
      );
    const given = overrideOf(name, type !== undefined);
    if (expression === undefined && given === undefined)
      return type === undefined ? stringValue("") : nullOf(type);
    const value =
      expression === undefined
        ? undefined
        : located(expression.range, () => convert(valueOfExpression(expression), type ?? dynamicType));
    if (given === undefined || block === undefined) return value ?? stringValue("");
    return located(block.labels[0]?.range ?? block.typeRange, () =>
      valueOfText(name, given, { type, fallback: value }),
    );
  }

  /** Returns the text that replaces a default. `NAME_JSON` has it as JSON, unless that is a variable itself. */
  function overrideOf(name: string, isTyped: boolean): { text: string; isJson: boolean } | undefined {
    const text = valueOf(name);
    const jsonName = `${name}_JSON`;
    if ((text === undefined || isTyped) && !variables.has(jsonName) && !Object.hasOwn(builtIn, jsonName)) {
      const json = valueOf(jsonName);
      if (json !== undefined) return { text: json, isJson: true };
    }
    return text === undefined ? undefined : { text, isJson: false };
  }

  function listed(name: string, block: NamedBlock): ListedVariable {
    const value = located(block.labels[0]?.range ?? block.typeRange, () => lookUp(name)) ?? stringValue("");
    const type = typeOfVariable(block);
    const description = constantText(block, "description");
    return {
      name,
      ...(type !== undefined && { type: constraintName(type) }),
      ...(description !== undefined && { description }),
      value: value.kind === "null" ? null : shownText(value, type),
    };
  }

  return {
    lookUp,
    resolve,
    names: () => new Set([...values.keys(), ...constants.keys(), ...variables.keys()]),
    check() {
      for (const name of tables.keys())
        if (!variables.has(name))
          throw new HclError(
            `--var-file ${name}=...: there is no variable ${name}`,
            undefined,
            `Declare it in the bake file, as in variable "${name}" { default = [] }`,
          );
      for (const block of variables.values()) warnOfUnknown(block, variableFields, warn);
      const list = [...variables].map(([name, block]) => listed(name, block));
      for (const block of variables.values())
        for (const each of block.body.blocks) if (each.type === "validation") validate(each, scope());
      for (const { name, nameRange } of constants.values()) located(nameRange, () => lookUp(name));
      return list.sort((one, other) => compareTexts(one.name, other.name));
    },
  };
}

/** Returns the declared type, if there is one. */
function typeOfVariable(block: NamedBlock | undefined): Type | undefined {
  const expression = block?.body.attributes.get("type")?.expression;
  const isNull = expression?.kind === "literal" && expression.value.kind === "null";
  return expression === undefined || isNull ? undefined : typeNamed(expression);
}

function shownText(value: HclValue, type: Type | undefined): string {
  if (type === undefined) return isPrimitive(typeOf(value)) ? textOf(value) : jsonTextOf(value);
  const text = jsonTextOfType(value, type);
  return type.kind === "string" ? text.replace(/^"+|"+$/g, "") : text;
}

function validate({ body, typeRange }: HclBlock, scope: EvalContext): void {
  const [condition, message] = ["condition", "error_message"].map(
    (name) => body.attributes.get(name)?.expression,
  );
  if (condition === undefined) throw new HclError("a validation needs a condition", typeRange);
  const value = evaluate(condition, scope);
  if (located(condition.range, () => isTrue(value))) return;
  const text = message === undefined ? nullValue : evaluate(message, scope);
  throw new HclError(
    text.kind === "null" ? "the value is invalid" : textOf(convert(text, stringType)),
    condition.range,
    "This validation of the variable failed.",
  );
}
