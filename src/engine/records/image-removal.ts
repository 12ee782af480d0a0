import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { inTransaction } from "../../database.ts";
import { RequestError } from "../http/responses.ts";
import { moveToScratch } from "../layout.ts";
import { freedBytes } from "../system/disk.ts";
import { requireImage } from "./images.ts";
import { blobsDirectory } from "./imported-blobs.ts";
import { createOwnLayers, layerSize } from "./layer-sizes.ts";
import { findLayer, layerDirectory } from "./layers.ts";
import { imagesInUse } from "./operations.ts";
import type { Records } from "./records.ts";

/**
 * Removes an image, its tags, and those of its layers that nothing else is built on. Rejects with a RequestError (404, 409).
 * Returns the bytes that this frees, and those that stay although no image with a tag needs them: builds find these layers.
 */
export async function removeImage(
  records: Records,
  uuid: string,
): Promise<{ freedBytes: number; cachedBytes: number }> {
  const { database } = records;
  const { doomed, cachedBytes } = inTransaction(database, () => {
    const image = requireImage(records, uuid);
    if (imagesInUse(records).has(image.uuid))
      throw new RequestError(409, `image ${image.uuid} is in use: an operation runs on it`);
    database.query<undefined, [string]>("DELETE FROM images WHERE uuid = ?").run(image.uuid);
    const own = createOwnLayers(records)(image);
    const taken = takeUnusedLayers(records, image.layer);
    const cached = own.filter((id) => findLayer(database, id) !== undefined);
    return { doomed: taken, cachedBytes: cached.reduce((sum, id) => sum + layerSize(records, id), 0) };
  });
  const freed = freedBytes(doomed);
  for (const path of doomed) await rm(path, { recursive: true, force: true });
  return { freedBytes: freed, cachedBytes };
}

/**
 * Removes the records of layers from `top` down, up to the first that an image or another layer is built on. Moves their
 * directories into scratch and returns the new paths.
 */
function takeUnusedLayers({ database, layout }: Records, top: number): string[] {
  const isUsed = database.query<{ used: number }, [number, number]>(
    "SELECT EXISTS (SELECT 1 FROM images WHERE layer = ?) OR EXISTS (SELECT 1 FROM layers WHERE parent = ?) AS used",
  );
  const doomed: string[] = [];
  for (let layer = findLayer(database, top); layer !== undefined; ) {
    const { id, parent } = layer;
    if (isUsed.get(id, id)?.used !== 0) break;
    database.query<undefined, [number]>("DELETE FROM layers WHERE id = ?").run(id);
    for (const path of [layerDirectory(layout, id), blobsDirectory(layout, id)]) {
      // Only imported layers have blobs.
      if (existsSync(path)) doomed.push(moveToScratch(layout, path));
    }
    layer = parent === null ? undefined : findLayer(database, parent);
  }
  return doomed;
}
