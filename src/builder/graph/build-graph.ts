import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";
import { wording } from "../../messages/wording.ts";
import { nearest } from "../../suggest.ts";
import { findContext, type NamedContext, type NamedContexts } from "../contexts/named-context.ts";
import type { BuildWarning } from "../state/warnings.ts";

/** The dependencies of a Dockerfile's stages on each other, on images and on named contexts. */
export interface BuildGraph {
  /** The nodes in the Dockerfile's order; each is at its stage's index. */
  nodes: readonly StageNode[];
  /** Returns the edges of an instruction that was found later: a trigger of the image that a stage starts from. */
  edgesOf(stage: Stage, instruction: Instruction): Edge[];
}

interface StageNode {
  stage: Stage;
  edges: readonly Edge[];
  /** Copies of the ONBUILD instructions of the stage that its FROM names. With `--docker`, they are performed after the FROM. */
  triggers: readonly Instruction[];
}

/** One dependency of a stage. Edges are in the order of the instructions. */
export interface Edge {
  kind: "from" | "copy" | "mount";
  instruction: Instruction;
  /** The stage's name in the instruction, with variables replaced. */
  reference: string;
  target: EdgeTarget;
}

type EdgeTarget =
  | { kind: "stage"; index: number }
  | { kind: "image" }
  | { kind: "context"; context: NamedContext }
  /** A number that no stage before this one has. */
  | { kind: "missing" }
  /** The name depends on a variable that only an image defines. */
  | { kind: "unknown" };

/** Replaces the variables of a reference. Returns `undefined` if the Dockerfile alone does not define them. */
type Resolve = (word: string, edge: Pick<Edge, "kind" | "instruction">) => string | undefined;

/**
 * Builds the graph of all stages. A name means the context that has it, else a stage that has it, compared without case, else an
 * image. If several stages have the same name, FROM takes the last one before its stage. `--from` takes the last one of all, as in
 * Docker, and refuses it if it is not before this stage. `COPY --from` also accepts a stage's number
 * (https://docs.docker.com/build/building/multi-stage/), and here `RUN --mount` does, too, where Docker takes it for an image.
 */
export function buildGraph(
  { stages }: Pick<Dockerfile, "stages">,
  resolve: Resolve,
  contexts: NamedContexts = new Map(),
): BuildGraph {
  const names = new Map<string, number>();
  const lastOfName = new Map(stages.map(({ name, index }) => [name, index]));
  const edgeOf = (stage: Stage, { word, ...edge }: Reference): Edge => {
    const reference = resolve(word, edge);
    if (reference === undefined) return { ...edge, reference: word, target: { kind: "unknown" } };
    const context = findContext(reference, contexts);
    if (context !== undefined) return { ...edge, reference, target: { kind: "context", context } };
    const target = findTarget(reference, edge.kind, stage, edge.kind === "from" ? names : lastOfName);
    return { ...edge, reference, target };
  };
  const edgesOf = (stage: Stage, instruction: Instruction) =>
    sourcesOf(instruction).map((source) => edgeOf(stage, source));
  const nodes = stages.map((stage): StageNode => {
    const from = edgeOf(stage, { kind: "from", instruction: stage.from, word: stage.from.image });
    const triggers = from.target.kind === "stage" ? triggersIn(stages[from.target.index]) : [];
    const others = [...triggers, ...stage.instructions].flatMap((each) => edgesOf(stage, each));
    if (stage.name !== undefined) names.set(stage.name, stage.index);
    return { stage, edges: [from, ...others], triggers };
  });
  return { nodes, edgesOf };
}

/** Returns the stage that a build ends with: the one of that name or number; the last if `target` is `undefined`. */
export function findStage(stages: readonly Stage[], target: string | undefined): Stage | undefined {
  if (target === undefined) return stages.at(-1);
  const name = target.toLowerCase();
  const named = stages.findLast((stage) => stage.name === name);
  return named ?? (/^\d+$/.test(target) ? stages[Number(target)] : undefined);
}

/** Returns the indexes of the stages that a stage needs, itself included, in order. */
export function reachableFrom({ nodes }: BuildGraph, target: number): number[] {
  const reached = new Set<number>();
  const waiting = [target];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...stagesAmong(nodes[next]?.edges));
  }
  return [...reached].sort((one, other) => one - other);
}

/** Returns the edges of each instruction, in its order. */
export function edgesByInstruction({ nodes }: BuildGraph): Map<Instruction, readonly Edge[]> {
  return Map.groupBy(
    nodes.flatMap(({ edges }) => edges),
    ({ instruction }) => instruction,
  );
}

/** Returns the indexes of the stages among the edges' targets. */
export function stagesAmong(edges: readonly Edge[] = []): number[] {
  return edges.flatMap(({ target }) => (target.kind === "stage" ? [target.index] : []));
}

type Reference = Pick<Edge, "kind" | "instruction"> & { word: string };

/** Returns the stages and images that an instruction other than FROM names, as written. */
function sourcesOf(instruction: Instruction): Reference[] {
  if (instruction.name === "COPY" && instruction.from !== undefined)
    return [{ kind: "copy", instruction, word: instruction.from }];
  if (instruction.name !== "RUN") return [];
  return instruction.mounts.flatMap(({ from }): Reference[] =>
    from === undefined ? [] : [{ kind: "mount", instruction, word: from }],
  );
}

function triggersIn(stage: Stage | undefined): Instruction[] {
  return (stage?.instructions ?? []).flatMap((instruction) =>
    instruction.name === "ONBUILD" && instruction.trigger !== undefined ? [{ ...instruction.trigger }] : [],
  );
}

/** Returns the triggers that run after each FROM. */
export function triggersByFrom({ nodes }: BuildGraph): ReadonlyMap<Instruction, readonly Instruction[]> {
  return new Map(nodes.map(({ stage, triggers }) => [stage.from, triggers]));
}

function findTarget(
  reference: string,
  kind: Edge["kind"],
  { index }: Stage,
  names: ReadonlyMap<string | undefined, number>,
): EdgeTarget {
  const named = names.get(reference.toLowerCase());
  if (named !== undefined && named < index) return { kind: "stage", index: named };
  // A FROM accepts no number: `FROM 0` means an image of that name.
  if (kind === "from") return { kind: "image" };
  if (/^-?\d+$/.test(reference))
    return Number(reference) >= 0 && Number(reference) < index
      ? { kind: "stage", index: Number(reference) }
      : { kind: "missing" };
  return named === index ? { kind: "missing" } : { kind: "image" };
}

// The stages of `--no-cache-filter`.

/** Returns the indexes of the stages that the option names. Several stages may have the same name. */
export function uncachedStages({ stages }: Dockerfile, given: readonly string[]): ReadonlySet<number> {
  return new Set(given.flatMap((name) => stagesNamed(stages, name)).map(({ index }) => index));
}

/** Warns of each name that no stage has. BuildKit ignores it silently, so that one option serves several Dockerfiles. */
export function unknownUncachedStages(
  { stages, path }: Pick<Dockerfile, "stages" | "path">,
  given: readonly string[],
): BuildWarning[] {
  const names = stages.flatMap(({ name }) => name ?? []);
  return given
    .filter((name) => stagesNamed(stages, name).length === 0)
    .map((name) => {
      const meant = nearest(name, names);
      const advice = meant === undefined ? "" : ` (did you mean ${meant}?)`;
      return {
        rule: "UnusedNoCacheFilter",
        subject: name,
        message: wording`${{ option: "no-cache-filter" }} ${name} has no effect: ${path} has no such stage${advice}`,
      };
    });
}

function stagesNamed(stages: readonly Stage[], given: string): Stage[] {
  const name = given.toLowerCase();
  const named = stages.filter((stage) => stage.name === name);
  const numbered = named.length > 0 ? undefined : findStage(stages, given);
  return numbered === undefined ? named : [numbered];
}

/**
 * Replaces each stage that has the name of a context, as BuildKit does: the stage starts FROM the context and has no other
 * instructions. Every `--from` that means such a stage, also by its number, then has the context's name.
 */
export function overrideStages(dockerfile: Dockerfile, contexts: NamedContexts): Dockerfile {
  const isReplaced = ({ name }: Stage) => name !== undefined && findContext(name, contexts) !== undefined;
  if (!dockerfile.stages.some(isReplaced)) return dockerfile;
  const nameIn = (from: string): string => {
    const meant = findStage(dockerfile.stages, from);
    return meant?.name !== undefined && isReplaced(meant) ? meant.name : from;
  };
  const stages = dockerfile.stages.map((stage): Stage => {
    const { name, from, instructions } = stage;
    return name !== undefined && isReplaced(stage)
      ? { ...stage, from: { ...from, image: name }, instructions: [] }
      : { ...stage, instructions: instructions.map((instruction) => renameSources(instruction, nameIn)) };
  });
  const all = stages.flatMap(({ from, instructions }): Instruction[] => [from, ...instructions]);
  return { ...dockerfile, stages, instructions: [...dockerfile.globals, ...all] };
}

/** Replaces the names after `--from` and in mounts, also those of ONBUILD. */
function renameSources(instruction: Instruction, nameIn: (from: string) => string): Instruction {
  switch (instruction.name) {
    case "COPY":
      return instruction.from === undefined
        ? instruction
        : { ...instruction, from: nameIn(instruction.from) };
    case "RUN":
      return instruction.mounts.length === 0
        ? instruction
        : {
            ...instruction,
            mounts: instruction.mounts.map((mount) =>
              mount.from === undefined ? mount : { ...mount, from: nameIn(mount.from) },
            ),
          };
    case "ONBUILD":
      return instruction.trigger === undefined
        ? instruction
        : { ...instruction, trigger: renameSources(instruction.trigger, nameIn) };
    default:
      return instruction;
  }
}
