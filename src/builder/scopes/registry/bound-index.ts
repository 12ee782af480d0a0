import { emptyIndex, pruneIndex, type ScopeIndex } from "../scope-index.ts";
import { layersOfChain } from "./portable-image.ts";

interface Bounds {
  now: number;
  /** Images that no longer exist, as the index names them. */
  gone: ReadonlySet<string>;
  /** The size of all layers together; `undefined`: unlimited. */
  keepBytes: number | undefined;
  /** Digests of the blobs that the store has. */
  stored: ReadonlySet<string>;
}

/** A manifest has about 200 bytes for each, and registries accept 4 MiB. */
const maxChains = 15_000;

/**
 * Drops what has not been used for long, the least recently used beyond a size, and what no layer needs any more.
 */
export function boundIndex(
  index: ScopeIndex,
  { now, gone, stored, keepBytes = Number.POSITIVE_INFINITY }: Bounds,
): ScopeIndex {
  const pruned = pruneIndex(index, now, gone);
  const bounded: ScopeIndex = { ...emptyIndex(), steps: pruned.steps };
  addLayers(bounded, index, pruned.layers, keepBytes);
  for (const [hash, copy] of pruned.copies)
    if (bounded.layers.has(copy.layer) && bounded.images.has(copy.source)) bounded.copies.set(hash, copy);
  for (const [key, fact] of pruned.facts)
    if (bounded.chains.has(chainInKey(key))) bounded.facts.set(key, fact);
  for (const [key, mount] of pruned.mounts) if (stored.has(mount.digest)) bounded.mounts.set(key, mount);
  return bounded;
}

/** Adds layers with all that they need, the most recently used first, as far as there is room. */
function addLayers(
  bounded: ScopeIndex,
  index: ScopeIndex,
  layers: ScopeIndex["layers"],
  keepBytes: number,
): void {
  let bytes = 0;
  const newestFirst = [...layers].sort(([, one], [, other]) => other.usedAt - one.usedAt);
  for (const [hash, layer] of newestFirst) {
    const image = index.images.get(layer.image);
    const chain = image && layersOfChain(index, image.chain);
    if (image === undefined || chain === undefined) continue;
    const added = chainEntries(index, image.chain).filter(([key]) => !bounded.chains.has(key));
    const addedBytes = added.reduce((sum, [, { size }]) => sum + size, 0);
    if (bytes + addedBytes > keepBytes || bounded.chains.size + added.length > maxChains) continue;
    bytes += addedBytes;
    const { usedAt } = layer;
    bounded.layers.set(hash, layer);
    bounded.images.set(layer.image, { ...image, usedAt });
    for (const [key, entry] of added) bounded.chains.set(key, { ...entry, usedAt });
    for (const key of [image.config, image.origin]) {
      const text = index.texts.get(key);
      if (text !== undefined && !bounded.texts.has(key)) bounded.texts.set(key, { ...text, usedAt });
    }
  }
}

/** The key of a fact begins with the ChainID of the image whose files it is about. */
export function factKey(chain: string, question: string): string {
  return `${chain}\n${question}`;
}

function chainInKey(key: string): string {
  return key.slice(0, key.indexOf("\n"));
}

function chainEntries(index: ScopeIndex, top: string | null) {
  const entries: [string, NonNullable<ReturnType<ScopeIndex["chains"]["get"]>>][] = [];
  for (let chain = top; chain !== null; ) {
    const entry = index.chains.get(chain);
    if (entry === undefined) break;
    entries.push([chain, entry]);
    chain = entry.below;
  }
  return entries;
}
