/** Reads targets and groups. Fields are evaluated one by one, since an expression may refer to a field of another target. */

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
  type BakeDefinition,
  fieldNames,
  type Group,
  isFieldName,
  kindOfField,
  type Target,
  type TargetFields,
} from "../target.ts";
import type { NamedBlock } from "./bodies.ts";
import { readFieldValue, textsOf, warnOfUnknown } from "./fields.ts";
import { type Instance, instancesOf } from "./instances.ts";
import { valueOfField } from "./target-values.ts";
import type { BakeVariables } from "./variables.ts";

type Reference = Extract<Expression, { kind: "variable" }>;

interface Blocks {
  /** Returns the value of `target` or `group` in an expression: an object with the block and the field that the reference names. */
  lookUp(reference: Pick<Reference, "name" | "steps" | "range">): HclValue | undefined;
  readAll(): Pick<BakeDefinition, "targets" | "groups" | "emptyMatrices">;
}

/** Fields of newer versions of buildx that bough lacks, and that a build must not ignore. */
const unsupported: Readonly<Record<string, string>> = { policy: "policies in Rego" };
const targetFields = [...fieldNames, "inherits", "matrix", "name", "policy"];
const groupFields = ["targets", "description"];

export function createBlocks(
  blocks: readonly NamedBlock[],
  variables: BakeVariables,
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
      // Expressions see entries that are null; targets don't have them.
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
    // Only the named field is evaluated: the others may depend on the expression.
    const names = step?.kind === "attribute" ? [step.name] : known;
    return names.flatMap((name): [string, HclValue][] => {
      const value = partOf(instance, name);
      return value === undefined ? [] : [[name, value]];
    });
  }

  function readTarget(instance: Instance): Target {
    const { block, name } = instance;
    let fields: TargetFields = {};
    let inherits: string[] = [];
    for (const { name: field, nameRange, expression } of block.body.attributes.values()) {
      if (Object.hasOwn(unsupported, field))
        throw new HclError(`not supported: ${unsupported[field]}`, nameRange, "Leave the field out.");
      if (isFieldName(field)) fields = { ...fields, ...fieldOf(instance, field) };
      if (field !== "inherits") continue;
      const value = valueOf(instance, field);
      if (value !== undefined && value.kind !== "null")
        inherits = located(expression.range, () => textsOf(value));
    }
    return { name, origin: locationOf(block), inherits, fields };
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
      // The name of a block whose targets have other names means all of them, unless it is the name of a group, which comes later.
      const matrixGroups = [...renamed]
        .filter(([name, names]) => names.size > 1 || !names.has(name))
        .map(([name, names]): Group => ({ name, targets: [...names] }));
      const emptyMatrices = new Map(
        blocks
          .filter(({ type, name }) => type === "target" && !renamed.has(name))
          .map((block) => [block.name, locationOf(block)]),
      );
      return { targets, groups: [...matrixGroups, ...groups], emptyMatrices };
    },
  };
}

function locationOf({ labels, typeRange }: NamedBlock): string {
  return lineOfRange(labels[0]?.range ?? typeRange);
}

/** Returns the instances of blocks: several of a block with a matrix. */
function createInstances(blocks: readonly NamedBlock[], variables: BakeVariables, scope: () => EvalContext) {
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

  /** Returns the last instance with this name. */
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

/** Returns functions that evaluate arguments of blocks, each argument once. */
function createArguments(variables: BakeVariables) {
  const values = new Map<Instance, Map<string, HclValue>>();
  const underWay: string[] = [];

  /** Returns the value of an argument; `undefined` if the block lacks it. Throws if it depends on itself. */
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

  /** Evaluates all references of an expression, so that a cycle is an error even where its value is not needed. */
  function resolve(references: References, within: EvalContext): void {
    const own = references.variables.filter(({ name }) => name !== "target" && name !== "group");
    variables.resolve({ ...references, variables: own });
    for (const { name, steps, range } of references.variables)
      if (name === "target" || name === "group")
        located(range, () => within.lookUp(name, { kind: "variable", name, nameRange: range, steps, range }));
  }

  function fieldOf(instance: Instance, name: keyof TargetFields): TargetFields {
    const value = valueOf(instance, name);
    const range = instance.block.body.attributes.get(name)?.expression.range;
    return value === undefined || range === undefined
      ? {}
      : readFieldValue(name, value, range, instance.name);
  }

  return { valueOf, fieldOf };
}
