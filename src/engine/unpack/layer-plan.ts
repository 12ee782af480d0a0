import { contentDigestOf } from "../import/image-config.ts";
import { isAbsent } from "../records/absent-layers.ts";
import { hasCompactBlobs } from "../records/imported-blobs.ts";
import { findLayer, findLayerByContent, type LayerRecord } from "../records/layers.ts";
import type { Records } from "../records/records.ts";
import { createLayerCheck } from "../records/whole-layers.ts";

/** Consecutive layers of an image that form one layer of the engine; usually a single one. */
export interface LayerGroup {
  /** The index of the first layer, and of the layer after the last. */
  from: number;
  to: number;
  /** The digest of the content of all layers up to `to`. */
  content: string;
  /** The engine's layer with this content, which may be absent or damaged (not whole). */
  existing: { id: number; isWhole: boolean; isAbsent?: boolean; hasBlobs: boolean } | undefined;
}

/** The maximum number of a base image's layers. Docker makes no more than 127. Further ones are merged into one, since builds add many layers to a base. */
const maxBaseLayers = 128;

/** Plans how an image's layers are kept, the lowest first. Uses the lower layers that the engine already has. */
export function planLayers(
  records: Records,
  diffIds: readonly string[],
  maxLayers: number = maxBaseLayers,
): LayerGroup[] {
  const contents = Array.from({ length: diffIds.length + 1 }, (_, count) =>
    contentDigestOf(diffIds.slice(0, count)),
  );
  const isWhole = createLayerCheck(records);
  const known = findKnown(records, contents).map(
    ({ layer, to }, index, all): LayerGroup => ({
      from: all[index - 1]?.to ?? 0,
      to,
      content: contents[to] ?? "",
      existing: {
        id: layer.id,
        isWhole: isWhole(layer.id) && !isAbsent(records.database, layer.id),
        isAbsent: isAbsent(records.database, layer.id),
        hasBlobs: hasCompactBlobs(records.layout, layer.id),
      },
    }),
  );
  const [first = 0, ...ends] = endsOf(known.at(-1)?.to ?? 0, diffIds.length, known.length, maxLayers);
  const added = ends.map(
    (to, index): LayerGroup => ({
      from: ends[index - 1] ?? first,
      to,
      content: contents[to] ?? "",
      existing: undefined,
    }),
  );
  return [...known, ...added];
}

/** Returns the ends of the groups added after `from` layers, preceded by their start. An empty image becomes one empty layer. */
function endsOf(from: number, count: number, depth: number, maxLayers: number): number[] {
  if (count === 0) return depth === 0 ? [0, 0] : [0];
  const room = Math.max(maxLayers - depth, 1);
  const merged = Math.max(count - from - room, 0);
  const singles = Array.from({ length: count - from - merged }, (_, index) => from + merged + index + 1);
  return [from, ...singles];
}

/** Finds the engine's layers for as many of the image's lower layers as possible, the lowest first. */
function findKnown({ database }: Records, contents: readonly string[]): { layer: LayerRecord; to: number }[] {
  const ends = new Map(contents.map((content, to) => [content, to]));
  const contentOf = database.query<{ content: string | null }, [number]>(
    "SELECT content FROM layers WHERE id = ?",
  );
  for (const content of contents.toReversed()) {
    const chain: { layer: LayerRecord; to: number }[] = [];
    let layer = findLayerByContent(database, content);
    while (layer !== undefined) {
      const to = ends.get(contentOf.get(layer.id)?.content ?? "");
      const above = chain[0];
      // Edited records may have any content and depth.
      const fits =
        above === undefined || (to !== undefined && to < above.to && layer.depth === above.layer.depth - 1);
      if (to === undefined || !fits || (layer.parent === null) !== (layer.depth === 1)) break;
      chain.unshift({ layer, to });
      if (layer.parent === null) return chain;
      layer = findLayer(database, layer.parent);
    }
  }
  return [];
}
