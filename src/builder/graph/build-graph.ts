import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";

/** What a Dockerfile's stages need of each other and of images. */
export interface BuildGraph {
  /** In the Dockerfile's order; the place of each is its stage's index. */
  nodes: readonly StageNode[];
}

export interface StageNode {
  stage: Stage;
  edges: readonly Edge[];
  /** The ONBUILD instructions of the stage that its FROM names, with `--docker` performed behind it. This stage's own objects. */
  triggers: readonly Instruction[];
}

/** One need of a stage, in the order of its instructions. */
export interface Edge {
  kind: "from" | "copy" | "mount";
  instruction: Instruction;
  /** As the instruction names it, variables replaced. */
  reference: string;
  target: EdgeTarget;
}

export type EdgeTarget =
  | { kind: "stage"; index: number }
  | { kind: "image" }
  /** A number that no stage before this one has. */
  | { kind: "missing" }
  /** It depends on a variable that only an image could tell. */
  | { kind: "unknown" };

/** Replaces the variables of a reference; `undefined` where that takes more than the Dockerfile. */
export type Resolve = (word: string, edge: Pick<Edge, "kind" | "instruction">) => string | undefined;

/**
 * Reads the needs of every stage. A name means the last stage before this one that has it, without regard to case, and
 * that goes before an image of the same name; `COPY --from` and `RUN --mount` also take a stage's number
 * (https://docs.docker.com/build/building/multi-stage/).
 */
export function buildGraph({ stages }: Pick<Dockerfile, "stages">, resolve: Resolve): BuildGraph {
  const names = new Map<string, number>();
  const nodes = stages.map((stage): StageNode => {
    const edgeOf = ({ word, ...edge }: Reference): Edge => {
      const reference = resolve(word, edge);
      if (reference === undefined) return { ...edge, reference: word, target: { kind: "unknown" } };
      return { ...edge, reference, target: findTarget(reference, edge.kind, stage, names) };
    };
    const from = edgeOf({ kind: "from", instruction: stage.from, word: stage.from.image });
    const triggers = from.target.kind === "stage" ? triggersIn(stages[from.target.index]) : [];
    const edges = [from, ...[...triggers, ...stage.instructions].flatMap(referencesOf).map(edgeOf)];
    if (stage.name !== undefined) names.set(stage.name, stage.index);
    return { stage, edges, triggers };
  });
  return { nodes };
}

/** The stage that a build ends with: the named or numbered one, else the last. */
export function findStage(
  { nodes }: { nodes: readonly { stage: Stage }[] },
  target: string | undefined,
): Stage | undefined {
  if (target === undefined) return nodes.at(-1)?.stage;
  const name = target.toLowerCase();
  const named = nodes.findLast(({ stage }) => stage.name === name);
  return (named ?? (/^\d+$/.test(target) ? nodes[Number(target)] : undefined))?.stage;
}

/** Indexes of the stages that a stage needs, itself included, in their order. */
export function reachableFrom({ nodes }: BuildGraph, target: number): number[] {
  const reached = new Set<number>();
  const waiting = [target];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...stagesOf(nodes[next]));
  }
  return [...reached].sort((one, other) => one - other);
}

/** Indexes of the stages that an instruction names, in its order. */
export function stagesByInstruction({ nodes }: BuildGraph): ReadonlyMap<Instruction, readonly number[]> {
  const stages = new Map<Instruction, number[]>();
  for (const { edges } of nodes) {
    for (const { instruction, target } of edges) {
      if (target.kind !== "stage") continue;
      stages.set(instruction, [...(stages.get(instruction) ?? []), target.index]);
    }
  }
  return stages;
}

/** The index of the stage that a mount of a RUN names; `undefined` where it names none. */
export function mountedStage({ nodes }: BuildGraph, run: Instruction, from: string): number | undefined {
  for (const { edges } of nodes) {
    for (const { kind, instruction, reference, target } of edges) {
      if (kind === "mount" && instruction === run && reference === from && target.kind === "stage")
        return target.index;
    }
  }
  return undefined;
}

function stagesOf(node: StageNode | undefined): number[] {
  return (node?.edges ?? []).flatMap(({ target }) => (target.kind === "stage" ? [target.index] : []));
}

type Reference = Pick<Edge, "kind" | "instruction"> & { word: string };

function referencesOf(instruction: Instruction): Reference[] {
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

/** By FROM: what runs behind it. */
export function triggersByFrom({ nodes }: BuildGraph): ReadonlyMap<Instruction, readonly Instruction[]> {
  return new Map(nodes.map(({ stage, triggers }) => [stage.from, triggers]));
}

function findTarget(
  reference: string,
  kind: Edge["kind"],
  { index, name }: Stage,
  names: ReadonlyMap<string, number>,
): EdgeTarget {
  const lower = reference.toLowerCase();
  const named = names.get(lower);
  if (named !== undefined) return { kind: "stage", index: named };
  // A FROM takes no number: `FROM 0` is an image of that name.
  if (kind === "from") return { kind: "image" };
  if (/^-?\d+$/.test(reference))
    return Number(reference) >= 0 && Number(reference) < index
      ? { kind: "stage", index: Number(reference) }
      : { kind: "missing" };
  return lower === name ? { kind: "missing" } : { kind: "image" };
}
