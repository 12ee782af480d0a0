import { diskUsage } from "../system/disk.ts";
import { isAbsent } from "./absent-layers.ts";
import { layerChain, layerDirectory } from "./layers.ts";
import type { Records } from "./records.ts";

/** Creates a function that returns the bytes of all layers of an image. A layer never changes: it is measured once. */
export function createImageSizes(records: Records): (layer: number) => number {
  const sizes = new Map<number, number>();
  return (layer) => {
    let bytes = 0;
    for (const id of layerChain(records.database, layer)) {
      const size = sizes.get(id) ?? layerSize(records, id);
      sizes.set(id, size);
      bytes += size;
    }
    return bytes;
  };
}

/** Returns the bytes of the files of one layer: none of a layer that is not here yet. */
export function layerSize({ database, layout }: Records, id: number): number {
  const row = database
    .query<{ size: number | null }, [number]>("SELECT size FROM layers WHERE id = ?")
    .get(id);
  if (row?.size != null) return row.size;
  if (isAbsent(database, id)) return 0;
  const size = diskUsage(layerDirectory(layout, id));
  try {
    database.query<undefined, [number, number]>("UPDATE layers SET size = ? WHERE id = ?").run(size, id);
  } catch {
    // On a full or read-only disk, the layer is measured again when its size is needed.
  }
  return size;
}

/** Returns the bytes of a layer without those that a later version of it has, too. */
export function ownSize(records: Records, id: number): number {
  const row = records.database
    .query<{ bytes: number | null }, [number]>("SELECT heir_bytes AS bytes FROM layers WHERE id = ?")
    .get(id);
  return Math.max(0, layerSize(records, id) - (row?.bytes ?? 0));
}

/** Creates a function that returns the layers of an image that no other image with a tag has: those that only it needs. */
export function createOwnLayers({ database }: Pick<Records, "database">): (image: OwnedImage) => number[] {
  const users = new Map<number, Set<string>>();
  const tagged = database
    .query<OwnedImage, []>("SELECT DISTINCT uuid, layer FROM images JOIN all_tags ON image = uuid")
    .all();
  for (const { uuid, layer } of tagged)
    for (const id of layerChain(database, layer)) users.set(id, (users.get(id) ?? new Set()).add(uuid));
  return ({ uuid, layer }) =>
    layerChain(database, layer).filter((id) => {
      const own = users.get(id);
      return own === undefined || (own.size === 1 && own.has(uuid));
    });
}

interface OwnedImage {
  uuid: string;
  layer: number;
}
