import { contentDigestOf } from "../import/image-config.ts";
import { findBlobs } from "../records/imported-blobs.ts";
import { findLayer, findLayerByContent, type LayerRecord } from "../records/layers.ts";
import { createLayerCheck, type Records } from "../records/whole-layers.ts";

/** Some of an image's layers, one after the other, that are one layer of the engine: mostly a single one. */
export interface LayerGroup {
  /** Which: from the one with this index up to, and without, that one. */
  from: number;
  to: number;
  /** Names the content of all layers up to `to`. */
  content: string;
  /** The layer that has it, whole or damaged. */
  existing: LayerRecord | undefined;
  isWhole: boolean;
  hasBlobs: boolean;
}

/** Docker makes no more than 127; what an image has beyond it goes into one, for much is built upon a base. */
const maxBaseLayers = 128;

/** How an image's layers are kept, the lowest first. What the engine has already of the lower ones is used. */
export function planLayers(records: Records, diffIds: readonly string[]): LayerGroup[] {
  const contents = Array.from({ length: diffIds.length + 1 }, (_, count) =>
    contentDigestOf(diffIds.slice(0, count)),
  );
  const isWhole = createLayerCheck(records);
  const known = findKnown(records, contents).map(
    ({ layer, to }, index, all): LayerGroup => ({
      from: all[index - 1]?.to ?? 0,
      to,
      content: contents[to] ?? "",
      existing: layer,
      isWhole: isWhole(layer.id),
      hasBlobs: findBlobs(records.layout, layer.id) !== undefined,
    }),
  );
  const [first = 0, ...ends] = endsOf(known.at(-1)?.to ?? 0, diffIds.length, known.length);
  const added = ends.map(
    (to, index): LayerGroup => ({
      from: ends[index - 1] ?? first,
      to,
      content: contents[to] ?? "",
      existing: undefined,
      isWhole: false,
      hasBlobs: false,
    }),
  );
  return [...known, ...added];
}

/** Where what is added to `from` layers ends, the beginning first. An image of nothing is one empty layer. */
function endsOf(from: number, count: number, depth: number): number[] {
  if (count === 0) return depth === 0 ? [0, 0] : [0];
  const room = Math.max(maxBaseLayers - depth, 1);
  const merged = Math.max(count - from - room, 0);
  const singles = Array.from({ length: count - from - merged }, (_, index) => from + merged + index + 1);
  return [from, ...singles];
}

/** The engine's layers that stand for as many of the image's lower ones as possible, the lowest first. */
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
      // Records that somebody has edited lead anywhere.
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
