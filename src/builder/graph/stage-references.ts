import type { Dockerfile, Instruction, LineRange } from "../../dockerfile/instruction.ts";
import { type Culprit, DockerfileError, type Problem } from "../../dockerfile/problems/problem.ts";
import { expandWord } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { defaultPlatform, parsePlatform } from "../../image/platform.ts";
import { wording } from "../../messages/wording.ts";
import { nearest } from "../../suggest.ts";
import type { NamedContexts } from "../contexts/named-context.ts";
import type { Dialect } from "../dialect.ts";
import { startGlobals } from "../interpreter/interpret.ts";
import { declareGlobals } from "../interpreter/settings.ts";
import { targetStageName } from "../state/platform.ts";
import { type Arguments, variableLookup } from "../state/scope.ts";
import type { BuildWarning } from "../state/warnings.ts";
import { type BuildGraph, buildGraph, type Edge, findStage, reachableFrom } from "./build-graph.ts";

/** Returns the graph of a Dockerfile. `globals`: the ARGs before the first FROM, which a FROM may use. */
export function graphOf(dockerfile: Dockerfile, globals: Arguments, contexts: NamedContexts): BuildGraph {
  const lookup = variableLookup({ args: globals });
  const resolve: Parameters<typeof buildGraph>[1] = (word, { kind }) => {
    // Docker replaces no variables in `--from`.
    if (kind !== "from") return word.includes("$") ? undefined : word;
    try {
      return expandWord(word, lookup, dockerfile.escape);
    } catch (error) {
      // The FROM itself reports this when it is performed.
      if (error instanceof BoughError) return undefined;
      throw error;
    }
  };
  return buildGraph(dockerfile, resolve, contexts);
}

/** Returns the index of the stage that `target` names, or of the last one. Throws if no stage has that name. */
export function requireTarget({ stages }: Dockerfile, target: string | undefined): number {
  const stage = findStage(stages, target);
  if (stage !== undefined) return stage.index;
  const names = stages.flatMap(({ name }) => name ?? []);
  const meant = nearest(target ?? "", names);
  const all =
    names.length === 0
      ? "No stage has a name: give its number, counted from 0."
      : `The stages with a name: ${names.join(", ")}.`;
  throw new BoughError(wording`${{ option: "target" }} ${target ?? ""}: there is no such stage`, {
    kind: "usage",
    hint: meant === undefined ? all : `Did you mean ${meant}?`,
  });
}

/** The inputs that determine a Dockerfile's stages. */
interface StageInputs {
  dialect: Dialect;
  buildArgs: ReadonlyMap<string, string>;
  target: string | undefined;
  contexts: NamedContexts;
}

/**
 * Throws, before anything is run, for a `--from` that can't be resolved and, with `--docker`, for an unknown target. Stages that
 * the build does not need are checked, too. FROMs that depend on the service's platform are checked when they are performed.
 */
export function refuseBadStages(
  dockerfile: Dockerfile,
  { dialect, buildArgs, target, contexts }: StageInputs,
): void {
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, { buildArgs, target }), contexts);
  const problems = findBadReferences(dockerfile, graph, dialect);
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
  if (dialect.buildsNeededStages) requireTarget(dockerfile, target);
}

/**
 * Returns the Dockerfile with the instructions of the stages that the target needs, and their triggers. As in Docker, other instructions
 * require no permission and no extension of the service. By default every stage is needed.
 */
export function neededPart(
  dockerfile: Dockerfile,
  { dialect, buildArgs, target, contexts }: StageInputs,
): Dockerfile {
  if (!dialect.buildsNeededStages) return dockerfile;
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, { buildArgs, target }), contexts);
  const needed = reachableFrom(graph, requireTarget(dockerfile, target));
  const instructions = needed.flatMap((index) => {
    const { stage, triggers } = graph.nodes[index] ?? { stage: undefined, triggers: [] };
    return stage === undefined ? [] : [stage.from, ...triggers, ...stage.instructions];
  });
  return { ...dockerfile, instructions: [...dockerfile.globals, ...instructions] };
}

/** Finds bad references. By default only those of mounts count: every other `--from` is skipped then. */
export function findBadReferences({ lines }: Dockerfile, graph: BuildGraph, dialect: Dialect): Problem[] {
  return graph.nodes.flatMap(({ stage, edges }) =>
    edges.flatMap((edge): Problem[] => {
      if (!dialect.copiesFromImages && edge.kind !== "mount") return [];
      const problem = findProblem(edge, stage.index, graph);
      if (problem === undefined) return [];
      const { range } = edge.instruction;
      const culprit = culpritOf(edge, lines);
      return [{ ...problem, range, ...(culprit === undefined ? {} : { culprit }) }];
    }),
  );
}

/** Finds what is wrong with a reference of the stage with this index. */
export function findProblem(
  edge: Edge,
  index: number,
  graph: Pick<BuildGraph, "nodes">,
): Pick<Problem, "message" | "expected"> | undefined {
  const { kind, reference, target } = edge;
  const expected = "the name or number of a stage above, or an image";
  if (kind !== "from" && target.kind === "unknown")
    return { message: `--from=${reference}: variables are not replaced there`, expected };
  if (target.kind === "image" && kind !== "from") {
    const name = reference.toLowerCase();
    const named = graph.nodes.flatMap(({ stage }) => (stage.name === name ? [stage] : []));
    const last = named.findLast((stage) => stage.index > index);
    if (last === undefined) return undefined;
    const which = named.length > 1 ? "the last stage of that name" : "that stage";
    const line = last.from.range.start;
    return { message: `--from=${reference}: ${which} is defined later, on line ${line}`, expected };
  }
  if (target.kind !== "missing") return undefined;
  if (!/^-?\d+$/.test(reference))
    return { message: `--from=${reference}: circular dependency detected on stage: ${reference}`, expected };
  const which =
    Number(reference) === index
      ? "a stage can't copy from itself"
      : Number(reference) >= 0 && Number(reference) < graph.nodes.length
        ? "that stage is defined later"
        : `there ${graph.nodes.length === 1 ? "is 1 stage" : `are ${graph.nodes.length} stages`}, counted from 0`;
  return { message: `--from=${reference}: ${which}`, expected };
}

/** Finds the place of the reference in the instruction's lines. */
function culpritOf(
  { reference, instruction }: { reference: string; instruction: Instruction },
  lines: readonly string[],
): Culprit | undefined {
  for (let line = instruction.range.start; line <= instruction.range.end; line++) {
    const at = lines[line - 1]?.indexOf(`from=${reference}`) ?? -1;
    if (at >= 0) return { line, column: at + "from=".length + 1, length: reference.length };
  }
  return undefined;
}

/** Returns the ARGs before the first FROM, without asking the service for its platform. Omits an ARG that can't be declared. */
export function staticGlobals(
  dockerfile: Pick<Dockerfile, "globals" | "escape" | "stages">,
  { buildArgs, target }: { buildArgs: ReadonlyMap<string, string>; target: string | undefined },
): Arguments {
  const { globals: instructions, escape } = dockerfile;
  const platform = parsePlatform(defaultPlatform);
  let globals = startGlobals(
    { platforms: { build: platform, target: platform }, stage: targetStageName(dockerfile, target) },
    buildArgs,
  );
  for (const instruction of instructions) {
    try {
      globals = declareGlobals(instruction, globals, { buildArgs, escape });
    } catch (error) {
      // The build reports this when it reaches the ARG.
      if (!(error instanceof BoughError)) throw error;
    }
  }
  return globals;
}

/** Warns of each `--from` that names an image, but is nearly the name of a stage, before a registry is asked for it. */
export function mistypedStages(
  dockerfile: Dockerfile,
  { dialect, buildArgs, target, contexts }: StageInputs,
): (BuildWarning & { range: LineRange })[] {
  const names = dockerfile.stages.flatMap(({ name }) => name ?? []);
  if (names.length === 0) return [];
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, { buildArgs, target }), contexts);
  return graph.nodes.flatMap(({ edges }) =>
    edges.flatMap(({ kind, reference, target, instruction }) => {
      const isSkipped = kind === "from" || (kind === "copy" && !dialect.copiesFromImages);
      if (isSkipped || target.kind !== "image" || !/^[\w-]+$/.test(reference)) return [];
      const meant = nearest(reference, names);
      // A stage that is defined later is an error of its own.
      if (meant === undefined || meant === reference.toLowerCase()) return [];
      const message = `--from=${reference} names no stage, so it is an image; did you mean the stage ${meant}?`;
      return [{ rule: "MistypedStage", message, subject: reference, range: instruction.range }];
    }),
  );
}
