import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type HistoryLine, hasLayer, type ImageOrigin, withinLimit } from "../../image/history.ts";

/** What a stage's instructions have done so far, the latest first. Stages that start from one another share what they can. */
export interface StageStep {
  line: HistoryLine;
  /** What it does becomes a layer, be it with a later step. */
  changesFiles: boolean;
  before: StageStep | undefined;
}

/** What of a stage an image's author and history come from. */
interface Stage {
  env: ReadonlyMap<string, string>;
  args: ReadonlyMap<string, { value: string | undefined }>;
  /** What the stage's own MAINTAINER says. */
  author?: string;
  /** The base image's. */
  origin: ImageOrigin;
  steps: StageStep | undefined;
}

/** Adds a step without a layer: which step has one is not known before a layer is made. */
export function addStep(before: StageStep | undefined, created_by: string, changesFiles: boolean): StageStep {
  // BuildKit's name for its own lines, by which other tools know how to read them.
  const line = { created_by, comment: "buildkit.dockerfile.v0", empty_layer: true };
  return { line, changesFiles, before };
}

/** The layer has all steps since the one before it: of those that change files the last one stands for it. */
export function giveLayer(steps: StageStep | undefined): StageStep | undefined {
  const later: StageStep[] = [];
  let step = steps;
  for (; step !== undefined && !hasLayer(step.line) && !step.changesFiles; step = step.before)
    later.push(step);
  if (step === undefined || hasLayer(step.line)) return steps;
  const { empty_layer: _, ...line } = step.line;
  return later.reduceRight<StageStep>((before, each) => ({ ...each, before }), { ...step, line });
}

/** The lines of the layer that the next request makes; `undefined` where no step of the stage stands for it. */
export function linesOfLayer(
  stage: Stage,
  buildArgs: ReadonlyMap<string, string>,
): readonly HistoryLine[] | undefined {
  const lines: HistoryLine[] = [];
  let step = giveLayer(stage.steps);
  if (step === stage.steps) return undefined;
  let isFound = false;
  for (; step !== undefined && !(isFound && hasLayer(step.line)); step = step.before) {
    isFound ||= hasLayer(step.line);
    lines.push(step.line);
  }
  return withinLimit(masked(lines.reverse(), stage, buildArgs));
}

/** Author and history of an image of the stage as it is. */
export function originOf(stage: Stage, buildArgs: ReadonlyMap<string, string>): ImageOrigin {
  const lines: HistoryLine[] = [];
  for (let step = stage.steps; step !== undefined; step = step.before) lines.push(step.line);
  const author = stage.author ?? stage.origin.author;
  const before = stage.origin.history;
  return {
    ...(author === undefined ? {} : { author }),
    // A base without one stays the image that it is.
    ...(before === undefined && lines.length === 0
      ? {}
      : { history: withinLimit([...(before ?? []), ...masked(lines.reverse(), stage, buildArgs)]) }),
  };
}

/** Nothing that bough keeps has a secret in it. */
function masked(
  lines: HistoryLine[],
  { args, env }: Stage,
  buildArgs: ReadonlyMap<string, string>,
): HistoryLine[] {
  const declared = Array.from(args, ([name, { value }]): [string, string | undefined] => [name, value]);
  const { mask } = secretsAmong([...buildArgs, ...declared, ...env]);
  return lines.map((line) => ({ ...line, created_by: mask(line.created_by ?? "").slice(0, maxLength) }));
}

/** A line is for people: nobody reads more of it. */
const maxLength = 16 * 1024;
