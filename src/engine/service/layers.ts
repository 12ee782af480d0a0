import type { Service } from "../../service/client.ts";
import { openCacheArchive } from "../export/cache-archive.ts";
import { findOpenableLayer, listLayers, unpackedLayers } from "../export/image-layers.ts";
import { changesOf, summarizeChanges } from "../inspect/image-changes.ts";
import type { EngineState } from "../state.ts";
import { type Calls, interruptible } from "./calls.ts";
import { ensureImage } from "./images.ts";

type Layers = Pick<
  Service,
  "listLayers" | "layerSizes" | "openLayer" | "summarizeChanges" | "listChanges" | "openCache"
>;

/** An image's layers, what they change, and the caches of mounts. */
export function createLayers(state: EngineState, { read, change }: Calls, signal: AbortSignal): Layers {
  return {
    listLayers: (image) => read(() => listLayers(state, image, false)),

    layerSizes: (image) =>
      read(() =>
        listLayers(state, image, true).flatMap(({ id, size }) => (size === undefined ? [] : [{ id, size }])),
      ),

    openLayer: (image, layer, clampTo) =>
      read(async () => interruptible(await findOpenableLayer(state, image, layer, clampTo).open(), signal)),

    summarizeChanges: (image) =>
      read(async () => {
        const { uuid } = await ensureImage(state, image, signal);
        return summarizeChanges(unpackedLayers(state, uuid), state);
      }),

    listChanges: (image, layer, limit) =>
      read(() => changesOf(state, { image, layer, limit }, () => ensureImage(state, image, signal))),

    // This is a change, since it takes the cache and releases it.
    openCache: (key) => change(async () => interruptible(await openCacheArchive(state, key), signal)),
  };
}
