/** Targets and groups, computed field by field: an expression may refer to a field of another target. */

import type { EvalContext } from "../../../hcl/evaluate/eval-context.ts";
import { evaluate } from "../../../hcl/evaluate/evaluate.ts";
import { HclError, located } from "../../../hcl/hcl-error.ts";
import { expressionReferences, type References } from "../../../hcl/syntax/references.ts";
import type { Expression, TraversalStep } from "../../../hcl/syntax/tree.ts";
import { convert } from "../../../hcl/values/conversion.ts";
import { listOf, mapOf, stringType } from "../../../hcl/values/types.ts";
import { type HclValue, nullOf, objectValue, stringList, stringValue } from "../../../hcl/values/value.ts";
import { nearest } from "../../../suggest.ts";
import { lineOfRange } from "../excerpt.ts";
import {
  type Definition,
  type Fields,
  fieldNames,
  type Group,
  isFieldName,
  kindOfField,
  type Target,
} from "../target.ts";
import type { NamedBlock } from "./bodies.ts";
import { fieldsOf, textsOf, warnOfUnknown } from "./fields.ts";
import { type Instance, instancesOf } from "./instances.ts";
import { valueOfField } from "./target-values.ts";
import type { Variables } from "./variables.ts";

type Reference = Extract<Expression, { kind: "variable" }>;

interface Blocks {
  /** Returns what `target` or `group` is in an expression: of the block and field that this names. */
  lookUp(reference: Pick<Reference, "name" | "steps" | "range">): HclValue | undefined;
  readAll(): Pick<Definition, "targets" | "groups" | "emptyMatrices">;
}

/** Fields of newer versions of buildx that no build may go without. */
const required: Readonly<Record<string, string>> = { policy: "policies in Rego" };
const targetFields = [...fieldNames, "inherits", "matrix", "name", "policy"];
const groupFields = ["targets", "description"];

export function createBlocks(
  blocks: readonly NamedBlock[],
  variables: Variables,
  scope: () => EvalContext,
  warn: (message: string) => void,
): Blocks {
  const instances = createInstances(blocks, variables, scope);
  const { valueOf, fieldOf } = createArguments(variables);

  function partOf(instance: Instance, name: string): HclValue | undefined {
    if (name === "name") return stringValue(instance.name);
    const list = (value: HclValue | undefined) =>
      value === undefined || value.kind === "null" ? nullOf(listOf(stringType)) : stringList(textsOf(value));
    if (instance.block.type === "group") {
      if (name === "targets") return list(valueOf(instance, name));
      return name === "description" ? valueOfField(name, fieldOf(instance, name)) : undefined;
    }
    if (name === "inherits") return list(valueOf(instance, name));
    if (isFieldName(name) && kindOfField(name) === "map") {
      const value = valueOf(instance, name);
      // Here, entries that are null are still there.
      if (value !== undefined) return convert(value, mapOf(stringType));
    }
    return isFieldName(name) ? valueOfField(name, fieldOf(instance, name)) : undefined;
  }

  function lookUp({
    name: type,
    steps,
    range,
  }: Pick<Reference, "name" | "steps" | "range">): HclValue | undefined {
    const [block, field] = steps;
    if (block?.kind !== "attribute")
      throw new HclError(
        `a name is required after ${type}`,
        range,
        `As in ${type}.app.${type === "group" ? "targets" : "tags"}`,
      );
    const found = instances.find(type, block);
    return objectValue([[block.name, objectValue(partsOf(found, field))]]);
  }

  function partsOf(instance: Instance, step: TraversalStep | undefined): [string, HclValue][] {
    const known =
      instance.block.type === "group" ? ["name", ...groupFields] : ["name", "inherits", ...fieldNames];
    // Only one is computed, if one is named: others may depend on it.
    const names = step?.kind === "attribute" ? [step.name] : known;
    return names.flatMap((name): [string, HclValue][] => {
      const value = partOf(instance, name);
      return value === undefined ? [] : [[name, value]];
    });
  }

  function readTarget(instance: Instance): Target {
    const { block, name } = instance;
    let fields: Fields = {};
    let inherits: string[] = [];
    for (const { name: field, nameRange, expression } of block.body.attributes.values()) {
      if (Object.hasOwn(required, field))
        throw new HclError(`not supported: ${required[field]}`, nameRange, "Leave the field out.");
      if (isFieldName(field)) fields = { ...fields, ...fieldOf(instance, field) };
      if (field !== "inherits") continue;
      const value = valueOf(instance, field);
      if (value !== undefined && value.kind !== "null")
        inherits = located(expression.range, () => textsOf(value));
    }
    return { name, origin: placeOf(block), inherits, fields };
  }

  function readGroup(instance: Instance): Group {
    const { block, name } = instance;
    const expression = block.body.attributes.get("targets")?.expression;
    const value = valueOf(instance, "targets");
    if (expression === undefined || value === undefined)
      throw new HclError(
        `the group ${name} needs targets`,
        block.labels[0]?.range,
        'As in targets = ["app"]',
      );
    const targets = value.kind === "null" ? [] : located(expression.range, () => textsOf(value));
    const { description } = fieldOf(instance, "description");
    return { name, targets: [...new Set(targets)], ...(description !== undefined && { description }) };
  }

  return {
    lookUp,
    readAll() {
      const targets: Target[] = [];
      const groups: Group[] = [];
      const renamed = new Map<string, Set<string>>();
      for (const block of blocks)
        warnOfUnknown(block, block.type === "group" ? groupFields : targetFields, warn);
      for (const instance of instances.all()) {
        if (instance.block.type === "group") groups.push(readGroup(instance));
        else {
          targets.push(readTarget(instance));
          renamed.getOrInsertComputed(instance.block.name, () => new Set()).add(instance.name);
        }
      }
      // A block that makes others than the target of its name is a group of those; a group of this name comes before it.
      const made = [...renamed]
        .filter(([name, names]) => names.size > 1 || !names.has(name))
        .map(([name, names]): Group => ({ name, targets: [...names] }));
      const emptyMatrices = new Map(
        blocks
          .filter(({ type, name }) => type === "target" && !renamed.has(name))
          .map((block) => [block.name, placeOf(block)]),
      );
      return { targets, groups: [...made, ...groups], emptyMatrices };
    },
  };
}

function placeOf({ labels, typeRange }: NamedBlock): string {
  return lineOfRange(labels[0]?.range ?? typeRange);
}

/** Returns the targets and groups that blocks make. A matrix makes several of one. */
function createInstances(blocks: readonly NamedBlock[], variables: Variables, scope: () => EvalContext) {
  let made: readonly Instance[] | undefined;
  let byName: ReadonlyMap<string, Instance> | undefined;
  let isMatrixUnderWay = false;

  function all(): readonly Instance[] {
    if (made !== undefined) return made;
    if (isMatrixUnderWay) throw new HclError("matrix and name can't refer to targets or groups");
    isMatrixUnderWay = true;
    made = blocks.flatMap((block) => instancesOf(block, scope(), variables));
    return made;
  }

  /** Of several blocks with this name, returns the last one. */
  function find(type: string, { name, range }: Extract<TraversalStep, { kind: "attribute" }>): Instance {
    byName ??= new Map(all().map((each) => [`${each.block.type}.${each.name}`, each]));
    const found = byName.get(`${type}.${name}`);
    if (found !== undefined) return found;
    const names = all().flatMap((each) => (each.block.type === type ? [each.name] : []));
    const meant = nearest(name, names);
    throw new HclError(`there is no ${type} ${name}`, range, meant && `Did you mean ${meant}?`);
  }

  return { all, find };
}

/** The arguments of blocks, of which each is evaluated once. */
function createArguments(variables: Variables) {
  const values = new Map<Instance, Map<string, HclValue>>();
  const underWay: string[] = [];

  /** Evaluates an argument of a block once. Throws if it depends on itself. */
  function valueOf(instance: Instance, name: string): HclValue | undefined {
    const known = values.getOrInsertComputed(instance, () => new Map()).get(name);
    const attribute = instance.block.body.attributes.get(name);
    if (known !== undefined || attribute === undefined) return known;
    const shown = `${instance.block.type}.${instance.name}.${name}`;
    if (underWay.includes(shown))
      throw new HclError(
        `${shown} depends on itself: ${[...underWay.slice(underWay.indexOf(shown)), shown].join(" -> ")}`,
      );
    underWay.push(shown);
    try {
      resolve(expressionReferences(attribute.expression), instance.scope);
      const value = evaluate(attribute.expression, instance.scope);
      values.get(instance)?.set(name, value);
      return value;
    } finally {
      underWay.pop();
    }
  }

  /** Computes what an expression refers to, so that a circle is an error even where its value would not be needed. */
  function resolve(references: References, within: EvalContext): void {
    const own = references.variables.filter(({ name }) => name !== "target" && name !== "group");
    variables.resolve({ ...references, variables: own });
    for (const { name, steps, range } of references.variables)
      if (name === "target" || name === "group")
        located(range, () => within.lookUp(name, { kind: "variable", name, nameRange: range, steps, range }));
  }

  function fieldOf(instance: Instance, name: keyof Fields): Fields {
    const value = valueOf(instance, name);
    const range = instance.block.body.attributes.get(name)?.expression.range;
    return value === undefined || range === undefined ? {} : fieldsOf(name, value, range, instance.name);
  }

  return { valueOf, fieldOf };
}
