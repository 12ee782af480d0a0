import { BoughError } from "../../errors.ts";
import { absentLayersOf } from "../records/absent-layers.ts";
import type { Image } from "../records/images.ts";
import { recordTable, unlistedLayers } from "../records/layer-listings.ts";
import type { EngineState } from "../state.ts";

/**
 * Makes listings of an image's absent layers from their tables of contents. Resolves to false if that is impossible: then paths can be
 * looked up only once the layers are here.
 */
export async function ensureListed(state: EngineState, image: Pick<Image, "layer">): Promise<boolean> {
  const unlisted = unlistedLayers(state, image);
  if (unlisted === undefined || unlisted.length === 0) return unlisted !== undefined;
  return state.listings(String(image.layer), async () => {
    // Imported only here, since few images have absent layers.
    const { makeListings } = await import("./list-layers.ts");
    try {
      await makeListings(state, image);
      return true;
    } catch (error) {
      state.closing.throwIfAborted();
      if (!(error instanceof BoughError)) throw error;
      for (const layer of absentLayersOf(state.database, image.layer))
        recordTable(state.database, layer, undefined);
      return false;
    }
  });
}
