import type { Dockerfile, Stage } from "../../dockerfile/instruction.ts";
import { layerBranch } from "../cache/layer-cache.ts";
import type { Emit } from "../events.ts";
import { findStage } from "../graph/build-graph.ts";
import type { ServiceBuild } from "../job.ts";
import type { StepRecord } from "../result.ts";
import type { StageState } from "../state/state.ts";
import type { MissingPart } from "../state/warnings.ts";

export function recordStep(
  { seconds, ...place }: Pick<StepRecord, "stage" | "step" | "line" | "instruction" | "seconds">,
  before: StageState | undefined,
  after: StageState | undefined,
): StepRecord {
  if (after === undefined || after.layer === before?.layer)
    return { ...place, layer: null, image: null, operation: null, cached: null, seconds };
  const { hash, image, operation, cached } = after.layer;
  return { ...place, layer: layerBranch(hash), image, operation, cached, seconds };
}

/** Totals of a build's events, for its result. */
interface CountedEvents {
  /** Files and bytes sent to the service. */
  uploaded: { files: number; bytes: number };
  /** Returns what a build without `--docker` has left out of its image. */
  missing(): MissingPart[];
  /** Returns the bytes sent for a step; for the layer at a stage's end, those sent since its last instruction ended. */
  uploadedFor(record: StepRecord): number;
}

/** Returns the same build with its events counted. */
export function countEvents(build: ServiceBuild): { countedBuild: ServiceBuild; counted: CountedEvents } {
  const uploaded = { files: 0, bytes: 0 };
  /** Files that the image lacks, by stage. */
  const leftOut: (MissingPart & { stage: number | undefined })[] = [];
  /** Bytes sent for each step that has ended. */
  const ofRecords = new Map<StepRecord, number>();
  /** Bytes sent since then, by the step's number. */
  const ofSteps = new Map<number, number>();
  const count = (step: number | undefined, files: number, bytes: number) => {
    uploaded.files += files;
    uploaded.bytes += bytes;
    if (step !== undefined) ofSteps.set(step, (ofSteps.get(step) ?? 0) + bytes);
  };
  const emit: Emit = (event) => {
    if (event.type === "warning" && event.leavesOut !== undefined && event.line !== undefined)
      leftOut.push({ what: event.leavesOut, line: event.line, stage: event.stage?.index });
    if (event.type === "uploaded") count(event.step, event.files - event.reused, event.sentBytes);
    else if (event.type === "downloaded") count(event.step, 1, event.bytes);
    else if (event.type === "step-end") {
      ofRecords.set(event.record, ofSteps.get(event.step) ?? 0);
      ofSteps.delete(event.step);
    }
    build.emit(event);
  };
  const missing = () => {
    const stages = stagesOfImage(build.asked.dockerfile.stages).map(({ index }) => index);
    const files = leftOut
      .filter(({ stage }) => stage !== undefined && stages.includes(stage))
      .map(({ what, line }) => ({ what, line }));
    return [...missingParts(build.asked.dockerfile), ...files].sort((one, other) => one.line - other.line);
  };
  const uploadedFor = (record: StepRecord) => ofRecords.get(record) ?? ofSteps.get(record.step) ?? 0;
  return { countedBuild: { ...build, emit }, counted: { uploaded, missing, uploadedFor } };
}

/**
 * Returns the parts that the image of a build without `--docker` lacks, as far as the Dockerfile alone tells. Only the last stage and
 * those that it starts from count: others reach the image only through a `COPY --from`, which counts itself.
 */
export function missingParts({ stages }: Pick<Dockerfile, "stages">): MissingPart[] {
  return stagesOfImage(stages)
    .flatMap(({ instructions }) => instructions)
    .flatMap((instruction) => {
      const { name, range } = instruction;
      if (name === "COPY" && instruction.from !== undefined)
        return [{ what: "COPY --from", line: range.start }];
      return name === "CMD" || name === "ENTRYPOINT" || name === "SHELL"
        ? [{ what: name, line: range.start }]
        : [];
    });
}

/** Returns the last stage, and the stages that it starts from. */
function stagesOfImage(stages: readonly Stage[]): Stage[] {
  const found: Stage[] = [];
  let stage = stages.at(-1);
  while (stage !== undefined) {
    found.unshift(stage);
    stage = findStage(stages.slice(0, stage.index), stage.from.image);
  }
  return found;
}
