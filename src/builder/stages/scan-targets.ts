/**
 * The stages and the build context that a scanner of packages gets beside the result, by arguments of the Dockerfile.
 * https://github.com/moby/buildkit/blob/master/docs/attestations/sbom.md
 */
import { parseGoBoolean } from "../../go/boolean.ts";
import { scratch } from "../bases/base.ts";
import { copyOfDirectory } from "../contexts/named-context.ts";
import { createExecutor } from "../interpreter/executor.ts";
import { interpretInStage } from "../interpreter/interpret.ts";
import type { BuildJob } from "../job.ts";
import type { Layer } from "../state/layer.ts";
import { type Arguments, scannerArguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";
import { commitPending } from "../steps/commit-step.ts";

export interface ScanTarget {
  /** `context`, or a stage's name, or `stage-2`. */
  name: string;
  /** All of its files. */
  layer: Layer;
}

interface BuiltStages {
  /** The index of the stage that is the result, which is scanned anyway. */
  target: number;
  /** Indexes of the stages that it needs, itself included, in order. */
  needed: readonly number[];
  globals: Arguments;
  stateOf(index: number): Promise<StageState>;
  committed(index: number): Promise<StageState>;
  /** A number that no layer of the Dockerfile has. */
  ordinal: number;
}

/** Returns the targets beside the result. `job`: that of the result's last step. */
export async function findScanTargets(stages: BuiltStages, job: BuildJob): Promise<ScanTarget[]> {
  const { target, needed, globals, stateOf, committed } = stages;
  const layers = new Map<string, Layer>();
  const nameOf = (index: number) => job.asked.dockerfile.stages[index]?.name ?? `stage-${index}`;
  const asksFor = async (index: number, argument: string) =>
    isEnabled((await stateOf(index)).args, globals, { argument, stage: nameOf(index) });
  if (await asksFor(target, scannerArguments.context)) layers.set("context", await copyContext(stages, job));
  for (const index of needed)
    if (index !== target && (await asksFor(index, scannerArguments.stage)))
      layers.set(nameOf(index), (await committed(index)).layer);
  return [...layers].map(([name, layer]) => ({ name, layer }));
}

/** Returns true if an argument's value is true, or names the stage. The stage's own value wins over the global one. */
function isEnabled(
  args: Arguments,
  globals: Arguments,
  { argument, stage }: { argument: string; stage: string },
): boolean {
  const own = args.get(argument);
  const value = own?.forScanner ?? own?.value ?? globals.get(argument)?.value ?? "";
  return parseGoBoolean(value) ?? value.split(",").includes(stage);
}

/** Copies the build context, without what is ignored, into the empty image. */
async function copyContext({ globals, ordinal }: BuiltStages, job: BuildJob): Promise<Layer> {
  const { stages } = job.asked.dockerfile;
  const [{ from }] = stages as [(typeof stages)[number]];
  // Files that only the scanner reads are not inputs of the image.
  const own = { ...job, inputs: undefined };
  const backend = createExecutor(own, ordinal);
  const empty = await backend.startFromImage(scratch, from, undefined);
  const title = "COPY . / (for the scanner)";
  const copy = { ...copyOfDirectory("context", from), from: undefined, original: title, title };
  const copied = await interpretInStage(copy, empty, globals, backend);
  return (await commitPending(copied, { line: from.range.start, ordinal: ordinal + 1 }, own)).layer;
}
