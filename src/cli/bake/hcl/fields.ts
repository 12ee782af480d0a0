/** Reads values of blocks as fields of targets, and warns of unknown fields. */

import { EvalBudget } from "../../../hcl/evaluate/budget.ts";
import type { EvalContext } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { HclError, located } from "../../../hcl/hcl-error.ts";
import { positionOf, type Range } from "../../../hcl/source.ts";
import { convert, textOf } from "../../../hcl/values/conversion.ts";
import { boolType, listOf, mapOf, stringType, type Type } from "../../../hcl/values/types.ts";
import { type HclValue, isMappingValue, isSequenceValue } from "../../../hcl/values/value.ts";
import { nearest } from "../../../suggest.ts";
import type { FileLocation } from "../file-location.ts";
import { kindOfField, type TargetFields } from "../target.ts";
import { readTargetEntries } from "../target-entries.ts";
import type { NamedBlock } from "./bodies.ts";

/** Reads the value of a target's field. `null` means that it is not given. Throws for a value of another type. */
export function readFieldValue(
  name: keyof TargetFields,
  value: HclValue,
  range: Range,
  target: string,
): TargetFields {
  if (value.kind === "null") return {};
  return located(range, () => {
    switch (kindOfField(name)) {
      case "text":
        return { [name]: textOf(convert(value, stringType)) };
      case "flag": {
        const flag = convert(value, boolType);
        return flag.kind === "bool" ? { [name]: flag.isTrue } : {};
      }
      case "list":
        return { [name]: textsOf(value) };
      case "map":
        return { [name]: mapOfTexts(name, value) };
      case "entries": {
        const location: FileLocation = { file: range.source.name, path: ["target", target, name], range };
        return { [name]: readTargetEntries(name, entriesOf(name, value), location) };
      }
    }
  });
}

/** Returns the texts of a list. */
export function textsOf(value: HclValue): string[] {
  const list = convert(value, listOf(stringType));
  return elementsOf(list).map((each, index) => {
    if (each.kind === "null") throw new HclError(`element ${index} must not be null`);
    return textOf(each);
  });
}

/** Returns a map of texts without the entries that are null. */
function mapOfTexts(name: string, value: HclValue): Record<string, string> {
  const map = convert(value, mapOf(stringType));
  const entries = isMappingValue(map) ? [...map.entries] : [];
  return Object.fromEntries(
    entries.flatMap(([key, each]) => {
      if (each.kind !== "null") return [[key, textOf(each)]];
      if (name === "contexts") throw new HclError(`${key} must not be null`);
      return [];
    }),
  );
}

const entryTypes: Readonly<Record<string, Type>> = {
  secret: objectOf({ id: stringType, src: stringType, env: stringType }),
  ssh: objectOf({ id: stringType, paths: listOf(stringType) }),
};

function objectOf(attributes: Readonly<Record<string, Type>>): Type {
  return {
    kind: "object",
    attributes: new Map(Object.entries(attributes).sort(([one], [other]) => (one < other ? -1 : 1))),
    optional: new Set(Object.keys(attributes)),
  };
}

/** Returns the entries of a list: each a text as on a command line, or an object. */
function entriesOf(name: string, value: HclValue): unknown[] {
  if (value.kind !== "list" && value.kind !== "tuple")
    convert(value, listOf(entryTypes[name] ?? mapOf(stringType)));
  return elementsOf(value).map((each, index) => {
    if (each.kind === "string") return each.text;
    if (each.kind === "null") throw new HclError(`element ${index} must not be null`);
    const entry = convert(each, entryTypes[name] ?? mapOf(stringType));
    const parts = isMappingValue(entry) ? [...entry.entries] : [];
    return Object.fromEntries(
      parts.flatMap(([key, part]) =>
        part.kind === "null" ? [] : [[key, isSequenceValue(part) ? textsOf(part) : textOf(part)]],
      ),
    );
  });
}

function elementsOf(value: HclValue): readonly HclValue[] {
  return isSequenceValue(value) ? value.elements : [];
}

/** Returns the value of a field that must not use variables. */
export function constantText(block: NamedBlock, name: string): string | undefined {
  const expression = block.body.attributes.get(name)?.expression;
  if (expression === undefined) return undefined;
  // As in buildx, a text in JSON is not a template here.
  if (expression.kind === "json text") return expression.text;
  const value = evaluate(expression, emptyScope());
  return value.kind === "null"
    ? undefined
    : located(expression.range, () => textOf(convert(value, stringType)));
}

function emptyScope(): EvalContext {
  return {
    lookUp() {
      throw new HclError("variables can't be used here");
    },
    names: () => [],
    functionOf() {
      throw new HclError("functions can't be used here");
    },
    functionNames: () => [],
    budget: new EvalBudget(),
  };
}

/** Warns of unknown fields, which buildx ignores. */
export function warnOfUnknown(
  block: NamedBlock,
  known: readonly string[],
  warn: (message: string) => void,
): void {
  const fields = [
    ...[...block.body.attributes.values()].map(({ name, nameRange }) => ({ name, range: nameRange })),
    ...block.body.blocks.map(({ type, typeRange }) => ({ name: type, range: typeRange })),
  ];
  for (const { name, range } of fields.filter((field) => !known.includes(field.name))) {
    const meant = nearest(name, known);
    const { line } = positionOf(range.source, range.start);
    warn(
      `${range.source.name}:${line}: unknown field ${name} of the ${block.type} ${block.name}: it is ignored${meant === undefined ? "" : ` (did you mean ${meant}?)`}`,
    );
  }
}
