/** Fields of blocks: their values as those of targets, and what is unknown. */

import { EvalBudget } from "../../../hcl/evaluate/budget.ts";
import type { EvalContext } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { HclError, located } from "../../../hcl/hcl-error.ts";
import { positionOf, type Range } from "../../../hcl/source.ts";
import { convert, textOf } from "../../../hcl/values/conversion.ts";
import { boolType, listOf, mapOf, stringType, type Type } from "../../../hcl/values/types.ts";
import { type HclValue, isMappingValue, isSequenceValue } from "../../../hcl/values/value.ts";
import { nearest } from "../../../suggest.ts";
import { readEntries } from "../entries.ts";
import type { Place } from "../place.ts";
import { type Fields, kindOfField } from "../target.ts";
import type { NamedBlock } from "./bodies.ts";

/** Reads the value of a target's field. `null` means that it is not given. Throws for a value of another type. */
export function fieldsOf(name: keyof Fields, value: HclValue, range: Range, target: string): Fields {
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
        const place: Place = { file: range.source.name, path: ["target", target, name], range };
        return { [name]: readEntries(name, entriesOf(name, value), place) };
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

/** An entry that is null is not given. */
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

/** Returns a field that is a text without variables. */
export function constantText(block: NamedBlock, name: string): string | undefined {
  const expression = block.body.attributes.get(name)?.expression;
  if (expression === undefined) return undefined;
  // In JSON, it is not even a template.
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

/** Warns of fields that buildx passes over. */
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
