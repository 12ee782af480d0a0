import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type HistoryLine, hasLayer, type ImageOrigin, truncateHistory } from "../../image/history.ts";
import type { StageScope } from "./scope.ts";

/** A step of a stage, linked to the one before it. Stages that start from one another share their first steps. */
export interface StageStep {
  line: HistoryLine;
  /** True if its changes become a layer, possibly together with a later step's. */
  changesFiles: boolean;
  before: StageStep | undefined;
}

/** The parts of a stage that give an image its author and history. */
interface Stage extends Pick<StageScope, "env" | "args" | "author"> {
  /** The author and history of the base image. */
  origin: ImageOrigin;
  steps: StageStep | undefined;
}

/** Adds a step as one without a layer: which step has one is known only when a layer is made. */
export function addStep(before: StageStep | undefined, created_by: string, changesFiles: boolean): StageStep {
  // BuildKit's name for its own lines, by which other tools recognize their format.
  const line = { created_by, comment: "buildkit.dockerfile.v0", empty_layer: true };
  return { line, changesFiles, before };
}

/** Attaches a new layer to the last step that changes files. The layer has the changes of all steps since the previous layer. */
export function attachLayer(steps: StageStep | undefined): StageStep | undefined {
  const later: StageStep[] = [];
  let step = steps;
  for (; step !== undefined && !hasLayer(step.line) && !step.changesFiles; step = step.before)
    later.push(step);
  if (step === undefined || hasLayer(step.line)) return steps;
  const { empty_layer: _, ...line } = step.line;
  return later.reduceRight<StageStep>((before, each) => ({ ...each, before }), { ...step, line });
}

/** Returns the history lines for the layer that the next request makes; `undefined` if no step of the stage can have a layer. */
export function linesOfLayer(
  stage: Stage,
  buildArgs: ReadonlyMap<string, string>,
): readonly HistoryLine[] | undefined {
  const lines: HistoryLine[] = [];
  let step = attachLayer(stage.steps);
  if (step === stage.steps) return undefined;
  let isFound = false;
  for (; step !== undefined && !(isFound && hasLayer(step.line)); step = step.before) {
    isFound ||= hasLayer(step.line);
    lines.push(step.line);
  }
  return truncateHistory(masked(lines.reverse(), stage, buildArgs));
}

/** Returns the author and history of an image of the stage's current state. */
export function imageOriginOf(stage: Stage, buildArgs: ReadonlyMap<string, string>): ImageOrigin {
  const lines: HistoryLine[] = [];
  for (let step = stage.steps; step !== undefined; step = step.before) lines.push(step.line);
  const author = stage.author ?? stage.origin.author;
  const before = stage.origin.history;
  return {
    ...(author === undefined ? {} : { author }),
    // A base without a history gets none if no step is added.
    ...(before === undefined && lines.length === 0
      ? {}
      : { history: truncateHistory([...(before ?? []), ...masked(lines.reverse(), stage, buildArgs)]) }),
  };
}

/** Masks secrets, which bough never stores. */
function masked(
  lines: HistoryLine[],
  { args, env }: Stage,
  buildArgs: ReadonlyMap<string, string>,
): HistoryLine[] {
  const declared = Array.from(args, ([name, { value }]): [string, string | undefined] => [name, value]);
  const { mask } = secretsAmong([...buildArgs, ...declared, ...env]);
  return lines.map((line) => ({ ...line, created_by: mask(line.created_by ?? "").slice(0, maxLength) }));
}

/** The maximum length of a line, in characters. */
const maxLength = 16 * 1024;
