import { createSemaphore } from "../../semaphore.ts";
import { type OpenedSource, openGuardedSource } from "../import/fetch-blobs.ts";
import { type AbsentBlob, absentLayersOf, blobSources, unreachableReason } from "../records/absent-layers.ts";
import type { Image } from "../records/images.ts";
import type { EngineState } from "../state.ts";

/** The maximum number of requests at the same time. */
const maxConcurrent = 8;
/** The time to wait for a source. One that takes longer is assumed to have the blobs: a fetch waits longer for them. */
const maxWaitMilliseconds = 2_000;

/** Returns false if a layer of the image is neither here nor in any of its sources, as far as these respond. */
export async function isUsable(state: EngineState, image: Pick<Image, "layer">): Promise<boolean> {
  return absentLayersOf(state.database, image.layer).length === 0 || (await probeImage(state, image));
}

/**
 * Asks the sources of an image's absent layers whether they have them. Records those that do not, and returns false if the image can't be
 * used then. Does not ask for layers that have several sources.
 */
async function probeImage(state: EngineState, { layer }: Pick<Image, "layer">): Promise<boolean> {
  const { database, unreachable, closing } = state;
  const absent = absentLayersOf(database, layer);
  const blobs = new Map<string, AbsentBlob>();
  for (const id of absent)
    for (const [blob, ...others] of blobSources(database, id))
      if (blob !== undefined && others.length === 0) blobs.set(`${blob.source} ${blob.digest}`, blob);
  if (blobs.size === 0) return true;
  const signal = AbortSignal.any([closing, AbortSignal.timeout(maxWaitMilliseconds)]);
  const sources = new Map<string, Promise<OpenedSource>>();
  const slots = createSemaphore(maxConcurrent);
  const probe = async (blob: AbsentBlob): Promise<void> => {
    const release = await slots.acquire(signal);
    try {
      const { store } = await sources.getOrInsertComputed(blob.source, () =>
        openGuardedSource(state, blob.source),
      );
      if (await store.hasBlob(blob, signal)) return;
    } finally {
      release();
    }
    const what = `its layer ${blob.digest} cannot be fetched from ${blob.source}`;
    unreachable.recordBlob(blob, `${what}: ${blob.source} has no such blob`);
  };
  try {
    // A source that does not respond may only be slow, or ask for a login. A fetch of the layer will report the reason.
    await Promise.allSettled(blobs.values().map(probe));
    closing.throwIfAborted();
  } finally {
    for (const source of sources.values()) (await source.catch(() => undefined))?.[Symbol.dispose]();
  }
  return unreachableReason(state, absent) === undefined;
}
