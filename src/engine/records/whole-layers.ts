import type { Database } from "bun:sqlite";
import { lstatSync } from "node:fs";
import type { Layout } from "../layout.ts";
import { findLayer, type LayerRecord, layerDirectory, maxDepth } from "./layers.ts";

/** Where an engine keeps what it knows, and what it has. */
export interface Records {
  database: Database;
  layout: Layout;
}

/**
 * Tells whether layers are there: each a directory, not a link to one, and so are all below it down to one that stands on
 * nothing. Each is looked at once: make one for each question.
 */
export function createLayerCheck({ database, layout }: Records): (id: number) => boolean {
  const known = new Map<number, boolean>();
  const isWhole = (layer: LayerRecord | undefined): boolean => {
    if (layer === undefined) return false;
    const answer =
      known.get(layer.id) ?? (findLayerProblem(layout, layer) === undefined && hasWholeParent(layer));
    known.set(layer.id, answer);
    return answer;
  };
  const hasWholeParent = ({ parent, depth }: LayerRecord): boolean => {
    if (parent === null) return true;
    const below = findLayer(database, parent);
    // Down by one a layer: records that somebody has edited lead into no circle.
    return below?.depth === depth - 1 && isWhole(below);
  };
  return (id) => isWhole(findLayer(database, id));
}

/** What is wrong with the layer itself, if anything. */
export function findLayerProblem(layout: Layout, { id, parent, depth }: LayerRecord): string | undefined {
  if (depth < 1 || depth > maxDepth || (parent === null) !== (depth === 1))
    return "its record does not say what it stands on";
  const stats = lstatSync(layerDirectory(layout, id), { throwIfNoEntry: false });
  if (stats === undefined) return "its directory is gone";
  return stats.isDirectory() ? undefined : "something else is in its directory's place";
}
