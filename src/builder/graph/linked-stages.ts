import type { Dockerfile, FromInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { AskedBuild } from "../job.ts";
import type { Arguments } from "../state/scope.ts";
import {
  type BuildGraph,
  edgesByInstruction,
  reachableFrom,
  stagesAmong,
  triggersByFrom,
} from "./build-graph.ts";
import { findProblem, graphOf, requireTarget } from "./stage-references.ts";

/** The stages of a Dockerfile for a target, and the links between them. Stages are identified by their indexes. */
interface LinkedStages {
  graph: BuildGraph;
  target: number;
  /** The stages that a build interprets, in order: those that the target needs, or all (see `Dialect`). */
  needed: readonly number[];
  /** Returns the stages that an instruction starts from, copies from, or mounts. */
  sourcesOf(instruction: Instruction): readonly number[];
  /** Returns the stage that a RUN mounts under this name. */
  mountedStage(run: Instruction, from: string): number | undefined;
  /** Returns the ONBUILD triggers of the stage that a FROM names. */
  triggersOf(from: Instruction): readonly Instruction[];
  /** Links a trigger of the image that a stage starts from. Throws a BoughError of kind `usage` for an invalid name. */
  linkTrigger(trigger: Instruction, from: FromInstruction): void;
}

/** @param globals the ARGs before the first FROM */
export function linkStages(
  dockerfile: Dockerfile,
  globals: Arguments,
  { contexts, dialect, target: name }: Pick<AskedBuild, "contexts" | "dialect" | "target">,
): LinkedStages {
  const graph = graphOf(dockerfile, globals, contexts);
  const target = requireTarget(dockerfile, name);
  const edges = edgesByInstruction(graph);
  const triggers = triggersByFrom(graph);
  return {
    ...{ graph, target },
    needed: dialect.buildsNeededStages
      ? reachableFrom(graph, target)
      : dockerfile.stages.map(({ index }) => index),
    sourcesOf: (instruction) => stagesAmong(edges.get(instruction)),
    mountedStage: (run, from) =>
      stagesAmong(edges.get(run)?.filter(({ reference }) => reference === from))[0],
    triggersOf: (from) => triggers.get(from) ?? [],
    linkTrigger(trigger, from) {
      if (edges.has(trigger)) return;
      const node = graph.nodes.find(({ stage }) => stage.from === from);
      if (node === undefined) return;
      const found = graph.edgesOf(node.stage, trigger);
      for (const edge of found) {
        const problem = findProblem(edge, node.stage.index, graph);
        if (problem !== undefined)
          throw new BoughError(problem.message, { kind: "usage", hint: `Expected ${problem.expected}.` });
      }
      edges.set(trigger, found);
    },
  };
}
