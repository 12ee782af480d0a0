import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { DeferredFiles } from "../staging/deferred-files.ts";
import { hasLinkedFiles } from "../staging/hard-links.ts";
import { fileFeatures } from "../staging/request-fields.ts";
import { commitPending } from "./run.ts";
import type { RunSpec } from "./run-spec.ts";

/**
 * Makes a layer of staged files with several hard links before a RUN. A command that changes one of the links then leaves the
 * others unchanged, as in Docker, where each COPY has a layer. On a service that makes no hard links itself, a script makes them
 * in such a layer: see `placeStaged`. The RUN is not in the stage's history yet.
 */
export async function commitLinkedFiles(
  stage: StageState,
  place: Pick<RunSpec, "line" | "ordinal">,
  build: BuildJob,
): Promise<StageState> {
  const { staged } = stage;
  const hasLinks = staged instanceof DeferredFiles ? staged.hasLinks : hasLinkedFiles(staged);
  return hasLinks && (await fileFeatures(staged, build)).links ? commitPending(stage, place, build) : stage;
}
