import { diskUsage } from "../system/disk-usage.ts";
import { layerChain, layerDirectory } from "./layers.ts";
import type { Records } from "./records.ts";

/** Creates a function that returns the bytes on disk of all layers of an image. A layer never changes: it is measured once. */
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

/** Returns the bytes on disk of one layer. */
export function layerSize({ database, layout }: Records, id: number): number {
  const row = database
    .query<{ size: number | null }, [number]>("SELECT size FROM layers WHERE id = ?")
    .get(id);
  if (row?.size != null) return row.size;
  const size = diskUsage(layerDirectory(layout, id));
  try {
    database.query<undefined, [number, number]>("UPDATE layers SET size = ? WHERE id = ?").run(size, id);
  } catch {
    // On a full or read-only disk, the layer is measured again when its size is needed.
  }
  return size;
}
