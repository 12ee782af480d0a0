import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError, messageOf } from "../../errors.ts";
import { meansUnwritable } from "../faults.ts";
import { BlobFetch, UnfetchedBlobError } from "../import/fetch-blobs.ts";
import { meansNoRoom, measureRoom } from "../import-limits.ts";
import { type AbsentBlob, absentBlobs, absentLayersFrom, isAbsent } from "../records/absent-layers.ts";
import type { Image } from "../records/images.ts";
import { keepBlobs } from "../records/imported-blobs.ts";
import { type LayerMarks, noMarks } from "../records/layer-marks.ts";
import { layerChain, restoreLayer } from "../records/layers.ts";
import type { Success } from "../records/operations.ts";
import { requireNoFailedSync } from "../records/unsynced-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import type { LayerGroup } from "./layer-plan.ts";
import { openLayerThreads } from "./layer-threads.ts";
import { EarlyLayers, placesOf, unpackingDirectory, unpackLayers } from "./unpack-layers.ts";

/** Absent layers could not be fetched, for a reason that is not this machine's: they are unreachable. */
export class UnreachableLayersError extends BoughError {
  override readonly name = "UnreachableLayersError";
}

/**
 * Fetches the absent layers of an image, verifies them and unpacks them as an import does. See `OperationWork.perform`.
 *
 * @throws UnreachableLayersError after noting which layers are unreachable
 */
export async function performFetch(
  state: EngineState,
  image: Pick<Image, "uuid" | "layer">,
  run: OperationRun,
  report: (message: string) => void,
): Promise<() => Success> {
  const { database, layout, importLimits, inUserNamespace } = state;
  const { groups, blobs } = planFetch(state, image.layer);
  const ended = new AbortController();
  const signal = AbortSignal.any([run.signal, ended.signal]);
  const threads = openLayerThreads(signal);
  const room = measureRoom(`image ${image.uuid}`, layout.directory, importLimits);
  const directory = join(run.directory, unpackingDirectory);
  const early = new EarlyLayers({ directory, threads, room, inUserNamespace });
  let damaged: AbsentBlob | undefined;
  const downloads = new BlobFetch(state, run);
  try {
    mkdirSync(directory);
    const files = await downloads.fetch(blobs, {
      report,
      signal,
      onBlob: (digest, path) => early.start(digest, path),
    });
    const marks = await unpackLayers(state, groups, {
      parts: { layers: files },
      image: { diffIds: blobs.map(({ diffId }) => diffId) },
      onFailure: (index) => {
        damaged ??= blobs[index];
      },
      ...{ run, threads, early, room, signal, report },
    });
    await threads.close();
    await Promise.all([downloads.remove(), rm(directory, { recursive: true, force: true })]);
    return () => {
      requireNoFailedSync(database, run.uuid);
      for (const group of groups) keepFetched(state, group, run, marks.get(group) ?? noMarks);
      state.layerSync.request();
      return { status: "SUCCESS", error: null, image: image.uuid };
    };
  } catch (error) {
    if (run.signal.aborted || meansUnwritable(error, layout) || meansNoRoom(error)) throw error;
    throw unreachable(state, image.layer, error, damaged);
  } finally {
    ended.abort();
    await threads.close();
  }
}

/** Places the files of an absent layer. Another process may have done so meanwhile. */
function keepFetched(
  { database, layout, boot }: EngineState,
  group: LayerGroup,
  { uuid, directory }: OperationRun,
  marks: LayerMarks,
): void {
  const id = group.existing?.id;
  if (id === undefined || !isAbsent(database, id)) return;
  const places = placesOf(directory, group);
  const unsyncedIn = { boot, operation: uuid };
  restoreLayer(database, layout, id, { directory: places.content, marks, unsyncedIn });
  keepBlobs(layout, id, places.blobs);
}

/** Returns all layers of an image as groups, the lowest first, and the blobs of the absent ones, which the groups' indexes count. */
function planFetch({ database }: EngineState, top: number): { groups: LayerGroup[]; blobs: AbsentBlob[] } {
  const blobs: AbsentBlob[] = [];
  const groups = layerChain(database, top)
    .reverse()
    .map((id): LayerGroup => {
      const own = absentBlobs(database, id);
      const from = blobs.length;
      blobs.push(...own);
      const isHere = own.length === 0;
      const existing = { id, isAbsent: !isHere, isWhole: isHere, hasBlobs: isHere };
      return { from, to: blobs.length, content: "", existing };
    });
  return { groups, blobs };
}

/** Notes the layers that can't be fetched: one whose blob is missing or damaged, or else all of a source that does not respond. */
function unreachable(
  { database, unreachable }: EngineState,
  top: number,
  error: unknown,
  damaged: AbsentBlob | undefined,
): BoughError {
  const failed = error instanceof UnfetchedBlobError ? error.blob : damaged;
  const ofSource = error instanceof UnfetchedBlobError && !error.concernsBlob;
  const chain = layerChain(database, top);
  const holding =
    ({ digest }: AbsentBlob) =>
    (layer: number) =>
      absentBlobs(database, layer).some((blob) => blob.digest === digest);
  const layers =
    failed === undefined
      ? chain
      : ofSource
        ? absentLayersFrom(database, failed.source)
        : chain.filter(holding(failed));
  const reason =
    failed === undefined
      ? messageOf(error)
      : `its layer ${failed.digest} cannot be fetched from ${failed.source}: ${messageOf(error)}`;
  unreachable.note(layers, reason);
  return new UnreachableLayersError(reason, { cause: error });
}
