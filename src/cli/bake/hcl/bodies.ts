import { HclError } from "../../../hcl/hcl-error.ts";
import { parseFile } from "../../../hcl/syntax/parse-body.ts";
import { type BlockTypes, parseJsonFile } from "../../../hcl/syntax/parse-json.ts";
import type { Attribute, HclBlock, HclBody } from "../../../hcl/syntax/tree.ts";
import { nearest } from "../../../suggest.ts";

/** The declarations of all bake files. */
export interface Declarations {
  /** Arguments outside of blocks: their values can't be set in the environment. */
  constants: ReadonlyMap<string, Attribute>;
  /** Variables and functions by name. The last one with a name wins. */
  variables: ReadonlyMap<string, NamedBlock>;
  functions: ReadonlyMap<string, NamedBlock>;
  /** Groups and targets, in their order. */
  blocks: readonly NamedBlock[];
}

export type NamedBlock = HclBlock & { name: string };

/** The types of blocks in a bake file. JSON's syntax does not distinguish blocks from arguments. */
const blockTypes: BlockTypes = {
  group: { hasName: true, blocks: {} },
  target: { hasName: true, blocks: {} },
  variable: { hasName: true, blocks: { validation: { hasName: false, blocks: {} } } },
  function: { hasName: true, blocks: {} },
};

/**
 * Parses files, and collects what they declare. Throws an HclError.
 *
 * @param reserved names of built-in variables, which files can't declare
 */
export function readDeclarations(
  files: readonly { name: string; text: string; isJson: boolean }[],
  reserved: ReadonlySet<string>,
  warn: (message: string) => void,
): Declarations {
  const bodies = files.map(({ isJson, ...source }) =>
    isJson ? parseJsonFile(source, blockTypes) : parseFile(source),
  );
  const blocks = bodies.flatMap((body) => body.blocks).filter((block) => isKnown(block, warn));
  const named = (...types: string[]) => blocks.filter(({ type }) => types.includes(type)).map(requireName);
  const declared = (type: string) =>
    new Map(
      named(type)
        .filter(({ name }) => !reserved.has(name) && !["group", "target"].includes(name))
        .map((block) => [block.name, block]),
    );
  const variables = declared("variable");
  return {
    constants: collectConstants(bodies, new Set([...reserved, "group", "target", ...variables.keys()])),
    variables,
    functions: declared("function"),
    blocks: named("group", "target"),
  };
}

function isKnown({ type, typeRange, labels }: HclBlock, warn: (message: string) => void): boolean {
  if (Object.hasOwn(blockTypes, type)) return true;
  const meant = nearest(type, Object.keys(blockTypes));
  const name = labels[0] === undefined ? "" : ` ${JSON.stringify(labels[0].text)}`;
  warn(
    `${typeRange.source.name}: unknown block ${type}${name}: it is ignored${meant === undefined ? "" : ` (did you mean ${meant}?)`}`,
  );
  return false;
}

function requireName(block: HclBlock): NamedBlock {
  const [label, another] = block.labels;
  if (label === undefined)
    throw new HclError(`a ${block.type} needs a name`, block.typeRange, `As in: ${block.type} "name" {`);
  if (another !== undefined) throw new HclError(`a ${block.type} takes one name only`, another.range);
  return { ...block, name: label.text };
}

function collectConstants(bodies: readonly HclBody[], others: ReadonlySet<string>): Map<string, Attribute> {
  const constants = new Map<string, Attribute>();
  for (const attribute of bodies.flatMap((body) => [...body.attributes.values()])) {
    const earlier = constants.get(attribute.name);
    if (earlier !== undefined && !others.has(attribute.name))
      throw new HclError(
        `${attribute.name} is already set in ${earlier.nameRange.source.name}`,
        attribute.nameRange,
      );
    constants.set(attribute.name, attribute);
  }
  for (const name of ["group", "target", "function"]) constants.delete(name);
  return constants;
}
