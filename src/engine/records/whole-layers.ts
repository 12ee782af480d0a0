import { lstatSync } from "node:fs";
import { isAbsent, unreachableLayers } from "./absent-layers.ts";
import { findLostMarks } from "./layer-marks.ts";
import { allLayers, type CheckedLayer, layerDirectory, layersDownFrom, maxDepth } from "./layers.ts";
import type { Records } from "./records.ts";
import { lostLayers } from "./unsynced-layers.ts";

/**
 * Creates a function that returns true for a layer if it and all layers below it exist, as directories and not as links, with all of
 * their marks, and none is lost. Absent layers exist while they can be fetched. The function checks each layer once, so create a new
 * one for each request.
 *
 * @param isChecked true for a layer that was found to be whole, with those below it, and need not be looked at again
 */
export function createLayerCheck(
  records: Records,
  isChecked: (id: number) => boolean = () => false,
): (id: number) => boolean {
  const missing = [...lostLayers(records), ...unreachableLayers(records)];
  const known = new Map<number, boolean>(missing.map((id) => [id, false]));
  const read = new Map<number, CheckedLayer>();
  let reads = 0;
  const find = (id: number): CheckedLayer | undefined => {
    if (!read.has(id) && reads <= maxReads) {
      reads++;
      const layers = reads > maxReads ? allLayers(records.database) : layersDownFrom(records.database, id);
      for (const layer of layers) read.set(layer.id, layer);
    }
    return read.get(id);
  };
  const isWhole = (layer: CheckedLayer | undefined): boolean => {
    if (layer === undefined) return false;
    const answer =
      known.get(layer.id) ??
      (isChecked(layer.id) || (findLayerProblem(records, layer) === undefined && hasWholeParent(layer)));
    known.set(layer.id, answer);
    return answer;
  };
  const hasWholeParent = ({ parent, depth }: CheckedLayer): boolean => {
    if (parent === null) return true;
    const below = find(parent);
    // The depth must fall by one per layer, so that edited records can't form a loop.
    return below?.depth === depth - 1 && isWhole(below);
  };
  return (id) => isWhole(find(id));
}

/** After this many queries for single chains, one query reads all layers: it takes less time than a hundred queries. */
const maxReads = 50;

/** Returns what is wrong with the layer itself, if anything. For `countsUnknown` see `findLostMarks`. */
export function findLayerProblem(
  { database, layout }: Records,
  { id, parent, depth, marks }: CheckedLayer,
  options?: { countsUnknown: boolean },
): string | undefined {
  if (depth < 1 || depth > maxDepth || (parent === null) !== (depth === 1))
    return "its record has an invalid parent or depth";
  const directory = layerDirectory(layout, id);
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  if (stats === undefined) return isAbsent(database, id) ? undefined : "its directory is gone";
  if (!stats.isDirectory()) return "its path is not a directory";
  return findLostMarks(database, { id, directory, inode: stats.ino, marks }, options);
}
