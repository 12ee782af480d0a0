/** What a target of a Dockerfile takes: arguments, secrets and SSH agents, as docker buildx lists them. */
import { reachableFrom } from "../../builder/graph/build-graph.ts";
import { graphOf, staticGlobals } from "../../builder/graph/stage-references.ts";
import { declare, expandPairs } from "../../builder/interpreter/settings.ts";
import { type Arguments, variableLookup } from "../../builder/state/scope.ts";
import type {
  ArgInstruction,
  Dockerfile,
  EnvInstruction,
  FromInstruction,
  Instruction,
  LineRange,
  Stage,
} from "../../dockerfile/instruction.ts";
import { referencesIn } from "../../dockerfile/words/references.ts";
import { BoughError } from "../../errors.ts";
import type { BuildInputs } from "./inputs.ts";

export interface Outline {
  name: string | undefined;
  description: string | undefined;
  args: readonly OutlineArgument[];
  secrets: readonly OutlineMount[];
  ssh: readonly OutlineMount[];
}

interface Placed {
  name: string;
  range: LineRange;
}

interface OutlineArgument extends Placed {
  description: string | undefined;
  /** The value with `--build-arg` and variables replaced; `undefined` if it has none. */
  value: string | undefined;
}

interface OutlineMount extends Placed {
  isRequired: boolean;
}

type OutlineInputs = Pick<BuildInputs, "buildArgs" | "contexts" | "target">;

/** Lists what the stages take that a target is made of. A stage's own ARG comes before those of the stages that it uses. */
export function outlineOf(dockerfile: Dockerfile, inputs: OutlineInputs, target: number): Outline {
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, inputs), inputs.contexts);
  const needed = new Set(reachableFrom(graph, target));
  const stages = dockerfile.stages.filter(({ index }) => needed.has(index));
  const baseOf = ({ index }: Stage) => {
    const from = graph.nodes[index]?.edges.find(({ kind }) => kind === "from")?.target;
    return from?.kind === "stage" ? from.index : undefined;
  };
  const { name, from } = dockerfile.stages[target] ?? {};
  const runs = stages.flatMap(({ instructions }) => instructions);
  return {
    name,
    description: from && commentOn(name, from, dockerfile.lines),
    args: byPlace(argumentsOf(dockerfile, inputs, stages, baseOf)),
    secrets: byPlace(mountsOf("secret", runs)),
    ssh: byPlace(mountsOf("ssh", runs)),
  };
}

function byPlace<Entry extends Placed>(entries: Iterable<Entry>): Entry[] {
  return [...entries].sort((one, other) => one.range.start - other.range.start);
}

/** What a stage inherits from its base. */
interface ArgumentScope {
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** The names in the FROM of the base, and of its bases. */
  inFroms: ReadonlySet<string>;
}

const emptyScope: ArgumentScope = { env: new Map(), args: new Map(), inFroms: new Set() };

/**
 * Lists arguments as BuildKit does: a stage names those that it declares, and those in its FROM and in the FROM of its bases; then come its
 * base and the other stages. Of a name, the first counts.
 */
function argumentsOf(
  dockerfile: Dockerfile,
  inputs: OutlineInputs,
  stages: readonly Stage[],
  baseOf: (stage: Stage) => number | undefined,
): Iterable<OutlineArgument> {
  const { escape, lines } = dockerfile;
  const { buildArgs } = inputs;
  const globals = staticGlobals(dockerfile, inputs);
  const describe = (key: string, value: string | undefined, instruction: ArgInstruction) => {
    const description = commentOn(key, instruction, lines);
    return { name: key, description, value, range: instruction.range };
  };
  const globalArguments = new Map(
    dockerfile.globals.flatMap((instruction) =>
      instruction.declarations.flatMap(({ key }): [string, OutlineArgument][] => {
        const value = globals.get(key)?.value;
        return value === undefined ? [] : [[key, describe(key, value, instruction)]];
      }),
    ),
  );
  const scopes = new Map<number, ArgumentScope>();
  const ofStages = new Map<number, ReadonlyMap<string, OutlineArgument>>();
  for (const stage of stages) {
    const base = scopes.get(baseOf(stage) ?? -1) ?? emptyScope;
    const inFroms = new Set([...base.inFroms, ...namesInFrom(stage, escape)]);
    let scope: ArgumentScope = { ...base, inFroms };
    const found = new Map<string, OutlineArgument>();
    const note = (name: string, argument: OutlineArgument | undefined) => {
      if (argument !== undefined) found.set(name, argument);
    };
    for (const name of inFroms) note(name, globalArguments.get(name));
    const noteDeclared = (
      instruction: ArgInstruction,
      declaration: ArgInstruction["declarations"][number],
    ) => {
      const { key, value: given } = declaration;
      const options = { buildArgs, escape, globals, laterWins: true };
      const [now] = orNone(() => [declare(declaration, scope, options)]);
      scope = { ...scope, args: now?.args ?? scope.args };
      // What an ARG before FROM has given a value is described there; TARGETOS and its kind are nobody's to give.
      const isInherited = given === undefined && !buildArgs.has(key) && globals.get(key)?.value !== undefined;
      note(key, isInherited ? globalArguments.get(key) : describe(key, now?.value, instruction));
    };
    for (const instruction of stage.instructions) {
      if (instruction.name === "ENV") scope = withPairs(scope, instruction, escape);
      if (instruction.name === "ARG")
        for (const declaration of instruction.declarations) noteDeclared(instruction, declaration);
    }
    scopes.set(stage.index, scope);
    ofStages.set(stage.index, found);
  }
  const named = new Map<string, OutlineArgument>();
  for (const { index } of withBases(stages, baseOf))
    for (const [key, argument] of ofStages.get(index) ?? []) if (!named.has(key)) named.set(key, argument);
  return named.values();
}

function withPairs(
  scope: ArgumentScope,
  instruction: EnvInstruction,
  escape: Dockerfile["escape"],
): ArgumentScope {
  const pairs = orNone(() => expandPairs(instruction, variableLookup(scope), escape));
  return { ...scope, env: new Map([...scope.env, ...pairs.map(({ key, value }) => [key, value] as const)]) };
}

function namesInFrom({ from }: Stage, escape: Dockerfile["escape"]): string[] {
  return [from.image, from.platform ?? ""].flatMap((word) =>
    referencesIn(word, escape).map(({ name }) => name),
  );
}

/** Orders stages from the target on: each is followed by its base. */
function withBases(stages: readonly Stage[], baseOf: (stage: Stage) => number | undefined): Set<Stage> {
  const byIndex = new Map(stages.map((stage) => [stage.index, stage]));
  const ordered = new Set<Stage>();
  for (const stage of stages.toReversed())
    for (let at: Stage | undefined = stage; at !== undefined; at = byIndex.get(baseOf(at) ?? -1))
      ordered.add(at);
  return ordered;
}

/** A word that can't be expanded is an error of the build. */
function orNone<T>(expand: () => T[]): T[] {
  try {
    return expand();
  } catch (error) {
    if (error instanceof BoughError) return [];
    throw error;
  }
}

/** One that is required counts before others of the same id. */
function mountsOf(type: "secret" | "ssh", instructions: readonly Instruction[]): Iterable<OutlineMount> {
  const found = new Map<string, OutlineMount>();
  for (const instruction of instructions) {
    if (instruction.name !== "RUN") continue;
    for (const { type: own, id, target, required } of instruction.mounts) {
      if (own !== type) continue;
      const name = id ?? (type === "ssh" ? "default" : target?.split("/").at(-1)) ?? "";
      const isRequired = required === true || required === "true" || required === "1";
      const known = found.get(name);
      if (known === undefined || (isRequired && !known.isRequired))
        found.set(name, { name, isRequired, range: instruction.range });
    }
  }
  return found.values();
}

/**
 * Returns what the comment above an instruction says about a name: `# NAME what it is`. As in BuildKit, an empty comment ends
 * what belongs to the instruction, an empty line does not.
 */
export function commentOn(
  name: string | undefined,
  { range }: Pick<ArgInstruction | FromInstruction, "range">,
  lines: readonly string[],
): string | undefined {
  if (name === undefined) return undefined;
  let found: string | undefined;
  for (let at = range.start - 2; at >= 0; at--) {
    const line = lines[at] ?? "";
    if (line.trim() === "") continue;
    const comment = /^#(.*)$/.exec(line)?.[1]?.trim();
    if (comment === "" || !line.trimStart().startsWith("#")) break;
    if (comment?.startsWith(`${name} `) === true) found = comment.slice(name.length + 1);
  }
  return found;
}
