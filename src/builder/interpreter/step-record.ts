import { layerBranch } from "../cache/layer-cache.ts";
import type { Emit } from "../events.ts";
import type { BuildRequest } from "../job.ts";
import type { StepRecord } from "../result.ts";
import type { StageState } from "./state.ts";

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

/** The same request, with what its events say was sent to the service, and in which lines a `COPY --from` was skipped. */
export function countEvents(build: BuildRequest): {
  request: BuildRequest;
  uploaded: { files: number; bytes: number };
  skippedCopies: ReadonlySet<number>;
} {
  const uploaded = { files: 0, bytes: 0 };
  const skippedCopies = new Set<number>();
  const emit: Emit = (event) => {
    if (event.type === "warning" && event.rule === "CopyFromSkipped" && event.line !== undefined)
      skippedCopies.add(event.line);
    if (event.type === "uploaded") {
      uploaded.files += event.files - event.reused;
      uploaded.bytes += event.sentBytes;
    } else if (event.type === "downloaded") {
      uploaded.files += 1;
      uploaded.bytes += event.bytes;
    }
    build.emit(event);
  };
  return { request: { ...build, emit }, uploaded, skippedCopies };
}
