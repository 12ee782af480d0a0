import { existsSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { isAbsent } from "../records/absent-layers.ts";
import { keepBlobs } from "../records/imported-blobs.ts";
import { type LayerMarks, noMarks } from "../records/layer-marks.ts";
import {
  addLayer,
  disownContent,
  findLayerByContent,
  type LayerRecord,
  type NewLayer,
  restoreLayer,
} from "../records/layers.ts";
import { createLayerCheck } from "../records/whole-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import type { LayerGroup } from "./layer-plan.ts";
import { placesOf } from "./unpack-layers.ts";

/** True if the engine may sync an import's layers later. A layer that replaces a damaged one must be synced at once. */
export function maySyncLater(groups: readonly LayerGroup[]): boolean {
  return groups.every(
    ({ existing }) =>
      existing === undefined || existing.isAbsent === true || (existing.isWhole && existing.hasBlobs),
  );
}

/** Records the unpacked directories as layers, and returns the uppermost one. Call it inside a transaction. */
export function keepLayers(
  state: EngineState,
  groups: readonly LayerGroup[],
  {
    uuid,
    directory,
    marks,
  }: Pick<OperationRun, "uuid" | "directory"> & {
    marks: ReadonlyMap<LayerGroup, LayerMarks>;
  },
  createdAt: number,
): number {
  const syncsLater = maySyncLater(groups);
  let top: LayerRecord | undefined;
  for (const group of groups) {
    const places = placesOf(directory, group);
    const layer = {
      content: group.content,
      parent: top,
      directory: places.content,
      createdAt,
      marks: marks.get(group) ?? noMarks,
    };
    const unsyncedIn = { boot: state.boot, operation: uuid };
    top = keepLayer(state, syncsLater ? { ...layer, unsyncedIn } : layer);
    keepBlobs(state.layout, top.id, places.blobs);
  }
  if (syncsLater) state.layerSync.request();
  if (top === undefined) throw new Error("an image has no layer");
  return top.id;
}

function keepLayer(state: EngineState, layer: NewLayer & { content: string }): LayerRecord {
  const { database, layout } = state;
  const { content, parent, directory } = layer;
  const existing = findLayerByContent(database, content);
  const isHere = existing !== undefined && !isAbsent(database, existing.id);
  if (isHere && createLayerCheck(state)(existing.id)) return existing;
  if (!existsSync(directory))
    throw new BoughError("a layer of the image was removed while it was being imported: import it again");
  const stands = existing?.parent === (parent?.id ?? null) && existing.depth === (parent?.depth ?? 0) + 1;
  if (existing !== undefined && stands) {
    restoreLayer(database, layout, existing.id, layer);
    return existing;
  }
  // Its record has another parent, so the layers built on it are lost.
  if (existing !== undefined) disownContent(database, existing.id);
  return addLayer(database, layout, layer);
}
