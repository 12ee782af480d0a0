/** JSON bake files: https://docs.docker.com/build/bake/reference/. */
import { messageOf } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { expand, type Lookup } from "./interpolate.ts";
import { parseBoolean } from "./names.ts";
import { below, fileAndLine, type Place, placeError } from "./place.ts";
import {
  type Definition,
  type Fields,
  fieldNames,
  type Group,
  isFieldName,
  isMap,
  normalize,
  readField,
  readList,
  readText,
  requireArray,
  requireFinite,
  requireMap,
  type ShownVariable,
  type Target,
} from "./target.ts";

export interface BakeText {
  file: string;
  text: string;
}

interface Surroundings {
  /** Values that a variable has instead of its default. */
  valueOf(name: string): string | undefined;
  /** Variables that every file has. */
  builtIn: Readonly<Record<string, string>>;
}

interface Block {
  name: string;
  body: Record<string, unknown>;
  place: Place;
}

const blockTypes = ["group", "target", "variable", "function"] as const;

/** Reads JSON bake files, which may use variables of each other. Throws a usage BoughError for what is invalid or unknown. */
export function readJsonFiles(files: readonly BakeText[], surroundings: Surroundings): Definition {
  const parsed = files.map((file) => ({ place: { ...file, path: [] }, root: parseJson(file) }));
  const blocks = (type: (typeof blockTypes)[number]) =>
    parsed.flatMap(({ place, root }) => blocksOf(root[type], below(place, type)));
  const [called] = blocks("function");
  if (called !== undefined)
    throw placeError(
      called.place,
      "functions are not supported",
      "`docker buildx bake --print` writes a file without them, which `bough bake -f -` reads.",
    );
  const attributes = parsed.flatMap(({ place, root }) =>
    Object.entries(root)
      .filter(([key]) => !blockTypes.some((type) => type === key))
      .map(([name, value]) => ({ name, value, place: below(place, name) })),
  );
  const variables = createVariables(attributes, blocks("variable"), surroundings);
  const targets: Target[] = [];
  const groups: Group[] = [];
  for (const block of blocks("target")) {
    const made = readTargets(block, variables.lookUp);
    targets.push(...made);
    const names = made.map(({ name }) => name);
    if (names.length > 0 && (names.length > 1 || names[0] !== block.name))
      groups.push({ name: block.name, targets: names });
  }
  for (const block of blocks("group")) groups.push(readGroup(block, variables.lookUp));
  return { targets, groups, variables: variables.list() };
}

function parseJson({ file, text }: BakeText): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw placeError({ file, path: [] }, `invalid JSON: ${messageOf(error)}`, undefined, error);
  }
  requireFinite(value, { file, path: [] });
  return requireMap(value, { file, path: [] });
}

/** Returns the blocks of a type. As in HCL's JSON, each may be a list of blocks, which are merged. */
function blocksOf(value: unknown, place: Place): Block[] {
  if (value === undefined || value === null) return [];
  const maps = Array.isArray(value) ? value : [value];
  return maps.flatMap((each) =>
    Object.entries(requireMap(each, place)).flatMap(([name, body]) =>
      (Array.isArray(body) ? body : [body]).map((one): Block => {
        const at = below(place, name);
        return { name, body: requireMap(one, at), place: at };
      }),
    ),
  );
}

const variableKeys = ["default", "description", "type", "validation"];

function createVariables(
  attributes: readonly { name: string; value: unknown; place: Place }[],
  blocks: readonly Block[],
  { valueOf, builtIn }: Surroundings,
): { lookUp: Lookup; list(): ShownVariable[] } {
  const known = new Map<string, unknown>(Object.entries(builtIn));
  const begun = new Set<string>();
  const constants = new Map(attributes.map((each) => [each.name, each]));
  const declared = new Map<string, Block>();
  for (const block of blocks) {
    const unknown = Object.keys(block.body).find((key) => !variableKeys.includes(key));
    if (unknown !== undefined) throw placeError(below(block.place, unknown), "unknown field of a variable");
    if (block.body.validation !== undefined)
      throw placeError(below(block.place, "validation"), "validation is not supported: it needs expressions");
    const earlier = declared.get(block.name);
    declared.set(block.name, { ...block, body: { ...earlier?.body, ...block.body } });
  }
  const lookUp: Lookup = (name, place) => {
    if (known.has(name)) return known.get(name);
    if (begun.has(name)) throw placeError(place, `the variable ${name} depends on itself`);
    begun.add(name);
    const value = compute(name, place);
    begun.delete(name);
    known.set(name, value);
    return value;
  };

  function compute(name: string, place: Place): unknown {
    const block = declared.get(name);
    if (block === undefined) {
      const constant = constants.get(name);
      if (constant !== undefined) return expand(constant.value, lookUp, constant.place);
      const meant = nearest(name, [...known.keys(), ...declared.keys(), ...constants.keys()]);
      throw placeError(
        place,
        `there is no variable ${name}`,
        meant === undefined
          ? 'A bake file\'s variables are declared in it: "variable": {...}.'
          : `Did you mean ${meant}?`,
      );
    }
    const type = block.body.type === undefined ? undefined : readText(block.body.type, block.place);
    if (type !== undefined && !["string", "number", "bool", "any"].includes(type))
      throw placeError(
        below(block.place, "type"),
        `type ${type} is not supported: string, number, bool and any are`,
      );
    const otherwise = expand(block.body.default ?? null, lookUp, below(block.place, "default"));
    const given = valueOf(name);
    if (given === undefined)
      return otherwise === null
        ? type === undefined
          ? ""
          : null
        : convert(otherwise, type, below(block.place, "default"));
    const wanted = type ?? (otherwise === null ? "string" : typeof otherwise);
    if (wanted === "object")
      throw placeError(
        block.place,
        `${name} is set in the environment, but its default is no string, number or boolean`,
      );
    return convert(given, wanted, block.place);
  }

  return {
    lookUp,
    list: () =>
      [...declared.values()]
        .sort((one, other) => (one.name < other.name ? -1 : 1))
        .map(({ name, body, place }) => {
          const value = lookUp(name, place);
          return {
            name,
            ...(body.type !== undefined && { type: readText(body.type, place) }),
            ...(body.description !== undefined && { description: readText(body.description, place) }),
            value: value === null ? null : typeof value === "object" ? JSON.stringify(value) : String(value),
          };
        }),
  };
}

function convert(value: unknown, type: string | undefined, place: Place): unknown {
  if (type === undefined || type === "any") return value;
  const text = readText(value, place);
  if (type === "string") return text;
  if (type === "number") {
    // A large integer stays as it is written.
    if (/^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text))) return text;
    if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
    throw placeError(place, `a number is required, not ${JSON.stringify(text)}`);
  }
  const boolean = parseBoolean(text);
  if (boolean !== undefined) return boolean;
  throw placeError(place, `true or false is required, not ${JSON.stringify(text)}`);
}

const namePattern = /^[a-zA-Z0-9_-]+$/;

export function requireName(name: string, place: Place): void {
  if (!namePattern.test(name))
    throw placeError(place, `invalid name ${JSON.stringify(name)}: letters, digits, _ and - are allowed`);
}

/** Reads a target: one, or with `matrix` one for each combination. */
function readTargets({ name, body, place }: Block, lookUp: Lookup): Target[] {
  const { matrix, name: named, ...others } = body;
  if (matrix === undefined) {
    if (named !== undefined) throw placeError(below(place, "name"), "name needs matrix");
    return [readTarget(name, others, place, lookUp)];
  }
  const axes = Object.entries(
    requireMap(expand(matrix, lookUp, below(place, "matrix")), below(place, "matrix")),
  );
  if (named === undefined) throw placeError(place, "matrix needs name", 'As in "name": "app-${version}".');
  let combinations: ReadonlyMap<string, unknown>[] = [new Map()];
  for (const [axis, values] of axes)
    combinations = combinations.flatMap((before) =>
      requireArray(values, below(place, "matrix", axis)).map((value) => new Map([...before, [axis, value]])),
    );
  const made = combinations.map((combination) => {
    const within: Lookup = (variable, at) =>
      combination.has(variable) ? combination.get(variable) : lookUp(variable, at);
    const own = readText(expand(named, within, below(place, "name")), below(place, "name"));
    return readTarget(own, others, place, within);
  });
  const twice = made.find(({ name: own }, index) => made.findIndex((each) => each.name === own) !== index);
  if (twice !== undefined)
    throw placeError(below(place, "name"), `the matrix makes two targets with the name ${twice.name}`);
  return made;
}

/** Fields of newer versions of buildx, or of builders that bough is not, and what they would do. */
const unsupported: Readonly<Record<string, string>> = {
  resources: "limits of a builder's resources",
  policy: "policies in Rego",
};

function readTarget(name: string, body: Record<string, unknown>, place: Place, lookUp: Lookup): Target {
  requireName(name, place);
  let fields: Fields = {};
  let inherits: string[] = [];
  for (const [key, value] of Object.entries(body)) {
    const at = below(place, key);
    const expanded = expand(value, lookUp, at);
    if (key === "inherits") inherits = expanded === null ? [] : readList(expanded, at);
    else if (isFieldName(key)) fields = { ...fields, ...readField(key, expanded, at) };
    else if (Object.hasOwn(unsupported, key))
      throw placeError(at, `not supported: ${unsupported[key]}`, "Leave the field out.");
    else {
      const meant = nearest(key, [...fieldNames, "inherits", "matrix", "name"]);
      throw placeError(at, "unknown field of a target", meant && `Did you mean ${meant}?`);
    }
  }
  return { name, origin: fileAndLine(place), inherits, fields: normalize(fields) };
}

function readGroup({ name, body, place }: Block, lookUp: Lookup): Group {
  requireName(name, place);
  const unknown = Object.keys(body).find((key) => key !== "targets" && key !== "description");
  if (unknown !== undefined) throw placeError(below(place, unknown), "unknown field of a group");
  const at = below(place, "targets");
  if (body.targets === undefined) throw placeError(at, "required, but missing", 'As in "targets": ["app"].');
  const targets = readList(expand(body.targets ?? [], lookUp, at), at);
  const description =
    body.description === undefined
      ? {}
      : { description: readText(body.description, below(place, "description")) };
  return { name, targets: [...new Set(targets)], ...description };
}

/** True for a value that is a compose file rather than a bake file. */
export function isCompose(value: unknown): boolean {
  return isMap(value) && isMap(value.services);
}
