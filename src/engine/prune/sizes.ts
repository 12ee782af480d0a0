import { isSha256 } from "../../sha256.ts";
import type { Layout } from "../layout.ts";
import { cacheDirectory } from "../records/caches.ts";
import { eventPath } from "../records/event-files.ts";
import { filePath } from "../records/files.ts";
import { blobsDirectory } from "../records/imported-blobs.ts";
import { layerSize } from "../records/layer-sizes.ts";
import { layerDirectory } from "../records/layers.ts";
import { isOperationId } from "../records/operations.ts";
import type { Records } from "../records/records.ts";
import { diskUsage } from "../system/disk.ts";
import type { Inventory } from "./inventory.ts";
import type { Selected, Sizes } from "./selection.ts";

export function createSizes(records: Records, inventory: Inventory): Sizes {
  const { layout } = records;
  const sizes: Sizes = {
    layer: (id) => layerSize(records, id) + diskUsage(blobsDirectory(layout, id)),
    file: (sha256) => diskUsage(filePaths(layout, [sha256])),
    cache: (name) => diskUsage(cacheDirectory(layout, name)),
    operation: (uuid) => diskUsage(eventPaths(layout, [uuid])),
    total: () =>
      [
        ...inventory.layers.map(({ id }) => sizes.layer(id)),
        ...[layout.files, layout.caches, layout.events].map((path) => diskUsage(path)),
      ].reduce((sum, bytes) => sum + bytes, 0),
  };
  return sizes;
}

/** Returns the paths of everything selected. Leaves out malformed names, which can't be on disk. */
export function pathsOf(layout: Layout, { layers, files, operations, caches }: Selected) {
  return {
    // Layers' directories, and the blobs of imported ones.
    layers: layers.flatMap((id) => [layerDirectory(layout, id), blobsDirectory(layout, id)]),
    files: filePaths(layout, files),
    operations: eventPaths(layout, operations),
    caches: caches.map((name) => cacheDirectory(layout, name)),
  };
}

export function filePaths(layout: Layout, files: readonly string[]): string[] {
  return files.filter(isSha256).map((sha256) => filePath(layout, sha256));
}

export function eventPaths(layout: Layout, operations: readonly string[]): string[] {
  return operations.filter(isOperationId).map((uuid) => eventPath(layout, uuid));
}
