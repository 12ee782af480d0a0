import {
  edgesByInstruction,
  reachableFrom,
  stagesAmong,
  triggersByFrom,
} from "../builder/graph/build-graph.ts";
import { graphOf, requireTarget } from "../builder/graph/stage-references.ts";
import { interpretFrom, interpretInStage, startGlobals } from "../builder/interpreter/interpret.ts";
import { declareGlobals } from "../builder/interpreter/settings.ts";
import { targetStageName } from "../builder/state/platform.ts";
import type { Dockerfile, FromInstruction, Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";
import { createPace } from "../pace.ts";
import { type DryStage, startDryStage } from "./dry-copy.ts";
import { createDryWorld, type DryOptions, type Notes, UncopyableSourceError } from "./dry-world.ts";
import type { Finding } from "./finding.ts";
import { openImage } from "./lints/references.ts";
import type { ErrorRule } from "./rules.ts";

export interface PlanOptions extends Omit<DryOptions, "baseOf" | "triggersOf"> {
  target: string | undefined;
}

/** The files, warnings and errors that a dry run of the Dockerfile has found. */
interface Plan extends Notes {
  errors: Finding[];
}

/** Interprets a Dockerfile as a build does, without a service. Notes errors, and goes on after them. */
export async function planBuild(dockerfile: Dockerfile, options: PlanOptions): Promise<Plan> {
  const plan: Plan = { files: [], references: [], warnings: [], errors: [] };
  const { buildArgs, dialect } = options;
  const { escape } = dockerfile;
  const pace = createPace(options.signal);
  const attempt = async <Result>(instruction: Instruction, before: Result, action: () => Promise<Result>) => {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
      plan.errors.push(findingOf(error, instruction));
      return before;
    }
  };

  const stage = targetStageName(dockerfile, options.target);
  let globals = startGlobals({ platforms: options.platform?.platforms, stage }, buildArgs);
  for (const instruction of dockerfile.globals)
    globals = await attempt(instruction, globals, async () =>
      declareGlobals(instruction, globals, { buildArgs, escape }),
    );
  const graph = graphOf(dockerfile, globals, options.contexts);
  const ends: DryStage[] = [];
  const edges = edgesByInstruction(graph);
  const baseOf = (from: FromInstruction) => ends[stagesAmong(edges.get(from))[0] ?? -1];
  const triggers = triggersByFrom(graph);
  const triggersOf = (from: FromInstruction) => triggers.get(from) ?? [];
  const world = createDryWorld({ ...options, baseOf, triggersOf }, escape, plan);
  const needed = new Set(
    dialect.buildsNeededStages ? reachableFrom(graph, requireTarget(dockerfile, options.target)) : [],
  );
  for (const { index, from, instructions } of dockerfile.stages) {
    if (dialect.buildsNeededStages && !needed.has(index)) continue;
    for (const edge of graph.nodes[index]?.edges ?? []) {
      const image = edge.kind !== "copy" || dialect.copiesFromImages ? openImage(edge) : undefined;
      if (image !== undefined) plan.references.push(image);
    }
    // A FROM that fails starts a stage anyway: the instructions after it are not a part of the stage before.
    let stage = await attempt(from, startDryStage(), () => interpretFrom(from, globals, world));
    for (const instruction of instructions)
      stage = await attempt(instruction, stage, () => interpretInStage(instruction, stage, globals, world));
    ends[index] = stage;
  }
  return plan;
}

function findingOf(error: BoughError, { range }: Instruction): Finding {
  const rule: ErrorRule = error instanceof UncopyableSourceError ? "InvalidSource" : "InvalidInstruction";
  return { rule, message: error.message, range, ...(error.hint === undefined ? {} : { hint: error.hint }) };
}
