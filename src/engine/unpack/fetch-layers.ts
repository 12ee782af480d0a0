import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import { meansUnwritable } from "../faults.ts";
import { BlobFetch, UnfetchedBlobError } from "../import/fetch-blobs.ts";
import { measureRoom, NoRoomError } from "../import-limits.ts";
import {
  type AbsentBlob,
  absentBlobs,
  isAbsent,
  recordForged,
  unreachableReason,
} from "../records/absent-layers.ts";
import type { Image } from "../records/images.ts";
import { keepBlobs } from "../records/imported-blobs.ts";
import { type LayerMarks, noMarks } from "../records/layer-marks.ts";
import { layerChain, restoreLayer } from "../records/layers.ts";
import type { SuccessfulOutcome } from "../records/operations.ts";
import { requireNoFailedSync } from "../records/unsynced-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import type { LayerGroup } from "./layer-plan.ts";
import { openLayerThreads } from "./layer-threads.ts";
import { EagerLayers, unpackedPaths, unpackingDirectory, unpackLayers } from "./unpack-layers.ts";

/** Thrown if absent layers could not be fetched, for a reason that does not lie in this machine. */
export class UnreachableLayersError extends BoughError {
  override readonly name = "UnreachableLayersError";
}

/**
 * Fetches the absent layers of an image, verifies them and unpacks them as an import does. A blob that one source lacks is fetched from
 * another. See `OperationWork.perform`.
 *
 * @throws UnreachableLayersError if a layer can't be fetched from any source, which is then on record
 */
export async function performFetch(
  state: EngineState,
  image: Pick<Image, "uuid" | "layer">,
  run: OperationRun,
  report: (message: string) => void,
): Promise<() => SuccessfulOutcome> {
  for (;;) {
    const plan = planFetch(state, image.layer);
    const attempt: FetchAttempt = { plan, damaged: undefined };
    try {
      return await attemptFetch(state, image, attempt, run, report);
    } catch (error) {
      if (run.signal.aborted || meansUnwritable(error, state.layout) || error instanceof NoRoomError)
        throw error;
      const reason = recordFailure(state, error, attempt);
      if (unreachableReason(state, layerChain(state.database, image.layer)) !== undefined)
        throw new UnreachableLayersError(reason, { cause: error });
      report(`${reason}: trying another source`);
      await removeUnpacked(run, plan);
    }
  }
}

interface FetchAttempt {
  plan: FetchPlan;
  /** The first blob that could not be unpacked. */
  damaged: { blob: AbsentBlob | undefined; isForged: boolean } | undefined;
}

async function attemptFetch(
  state: EngineState,
  image: Pick<Image, "uuid" | "layer">,
  attempt: FetchAttempt,
  run: OperationRun,
  report: (message: string) => void,
): Promise<() => SuccessfulOutcome> {
  const { database, layout, importLimits, inUserNamespace } = state;
  const { groups, blobs } = attempt.plan;
  const ended = new AbortController();
  const signal = AbortSignal.any([run.signal, ended.signal]);
  const threads = openLayerThreads(signal);
  const room = measureRoom(`image ${image.uuid}`, layout.directory, importLimits);
  const directory = join(run.directory, unpackingDirectory);
  const eager = new EagerLayers({ directory, threads, room, inUserNamespace });
  const downloads = new BlobFetch(state, run);
  try {
    mkdirSync(directory);
    const files = await downloads.fetch(blobs, {
      report,
      signal,
      onBlob: (digest, path) => eager.start(digest, path),
    });
    const marks = await unpackLayers(state, groups, {
      parts: { layers: files },
      image: { diffIds: blobs.map(({ diffId }) => diffId) },
      onFailure: (index, isForged) => {
        attempt.damaged ??= { blob: blobs[index], isForged };
      },
      ...{ run, threads, eager, room, signal, report },
    });
    await threads.close();
    await Promise.all([downloads.remove(), rm(directory, { recursive: true, force: true })]);
    return () => {
      requireNoFailedSync(database, run.uuid);
      for (const group of groups) commitFetched(state, group, run, marks.get(group) ?? noMarks);
      state.layerSync.request();
      return { status: "SUCCESS", error: null, image: image.uuid };
    };
  } finally {
    ended.abort();
    await threads.close();
    if (attempt.damaged?.blob !== undefined) downloads.discard(attempt.damaged.blob);
  }
}

/** Removes the unpacked files of an attempt. The downloaded ones stay for the next attempt. */
async function removeUnpacked(run: OperationRun, { groups }: FetchPlan): Promise<void> {
  const places = groups.map((group) => unpackedPaths(run.directory, group));
  const paths = places.flatMap(({ content, blobs }) => [content, blobs]);
  for (const path of [join(run.directory, unpackingDirectory), ...paths])
    await rm(path, { recursive: true, force: true });
}

/** Makes unpacked files those of an absent layer, unless another process has done so meanwhile. */
function commitFetched(
  { database, layout, boot }: EngineState,
  group: LayerGroup,
  { uuid, directory }: OperationRun,
  marks: LayerMarks,
): void {
  const id = group.existing?.id;
  if (id === undefined || !isAbsent(database, id)) return;
  const places = unpackedPaths(directory, group);
  const unsyncedIn = { boot, operation: uuid };
  restoreLayer(database, layout, id, { directory: places.content, marks, unsyncedIn });
  keepBlobs(layout, id, places.blobs);
}

interface FetchPlan {
  /** All layers of the image, the lowest first. */
  groups: LayerGroup[];
  /** The blobs of the absent layers, to which the groups' indexes refer. */
  blobs: AbsentBlob[];
}

function planFetch(state: EngineState, top: number): FetchPlan {
  const blobs: AbsentBlob[] = [];
  const groups = layerChain(state.database, top)
    .reverse()
    .map((id): LayerGroup => {
      const own = absentBlobs(state, id);
      const from = blobs.length;
      blobs.push(...own);
      const isHere = own.length === 0;
      const existing = { id, isAbsent: !isHere, isWhole: isHere, hasBlobs: isHere };
      return { from, to: blobs.length, content: "", existing };
    });
  return { groups, blobs };
}

/** Records what can't be fetched: a blob that is missing or damaged in a source, or else everything of a source. Returns the reason. */
function recordFailure(
  { database, unreachable }: EngineState,
  error: unknown,
  { plan, damaged }: FetchAttempt,
): string {
  const failed = error instanceof UnfetchedBlobError ? error.blob : damaged?.blob;
  const message = messageOf(error);
  if (failed === undefined) {
    for (const blob of plan.blobs) unreachable.recordBlob(blob, message);
    return message;
  }
  const reason = `its layer ${failed.digest} cannot be fetched from ${failed.source}: ${message}`;
  if (error instanceof UnfetchedBlobError && !error.concernsBlob)
    unreachable.recordSource(failed.source, reason);
  else unreachable.recordBlob(failed, reason);
  if (damaged?.isForged === true && failed === damaged.blob) recordForged(database, failed);
  return reason;
}
