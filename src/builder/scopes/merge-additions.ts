import type { Descriptor } from "../../image/oci-layout.ts";
import type { CachePlace, FoundIndex } from "./cache-place.ts";
import { boundIndex } from "./registry/bound-index.ts";
import { layersOfChain } from "./registry/portable-image.ts";
import { mergeIndexes, pruneIndex, type ScopeIndex } from "./scope-index.ts";

/** What a build adds to a cache. */
export interface Additions {
  index: ScopeIndex;
  /** Digests of the blobs that the place has now. */
  sent: ReadonlySet<string>;
}

interface MergeOptions {
  now: number;
  gone: ReadonlySet<string>;
  keepBytes?: number | undefined;
  /** False if the place may have lost blobs that its index names. */
  trusts: boolean;
}

/** Prepares adding to an existing index. `whole`: the additions as they are merged. */
export async function prepareMerge(
  { layers }: Pick<CachePlace, "layers">,
  found: FoundIndex,
  additions: Additions,
  { now, gone, keepBytes, trusts }: MergeOptions,
) {
  const kept = trusts || layers === undefined ? found.kept : await layers.findExisting(found.kept);
  const bounds = { now, gone, keepBytes, kept, stored: kept.union(additions.sent) };
  if (layers === undefined) {
    const whole = additions.index;
    const merge = (index: ScopeIndex) => pruneIndex(mergeIndexes(index, whole), now, gone);
    return { whole, merge, bounds };
  }
  const whole = withWholeImages(found.index, additions, kept);
  const merge = (index: ScopeIndex) =>
    boundIndex(mergeIndexes(withoutReplaced(index, whole, kept), whole), bounds);
  return { whole, merge, bounds };
}

/** Joins the additions of two builds. For an image that only one of them has sent, that one is used. */
export function joinAdditions(
  { layers }: Pick<CachePlace, "layers">,
  one: Additions,
  other: Additions,
): Additions {
  if (layers === undefined) return { index: mergeIndexes(one.index, other.index), sent: one.sent };
  const whole = withWholeImages(one.index, other, one.sent);
  const index = mergeIndexes(withoutReplaced(one.index, whole, one.sent), whole);
  return { index, sent: one.sent.union(other.sent) };
}

function isWhole(index: ScopeIndex, image: string, kept: ReadonlySet<string>): boolean {
  const found = index.images.get(image);
  const layers = found && layersOfChain(index, found.chain);
  return layers?.every(({ digest }) => kept.has(digest)) === true;
}

/** Returns the additions, with images whose layers the store has in place of those whose layers were not sent (`mode=min`). */
function withWholeImages(old: ScopeIndex, { index, sent }: Additions, kept: ReadonlySet<string>): ScopeIndex {
  const stored = kept.union(sent);
  const layers = new Map(index.layers);
  const replaced = new Map<string, string>();
  for (const [hash, layer] of layers) {
    const before = old.layers.get(hash);
    if (before === undefined || isWhole(index, layer.image, stored) || !isWhole(old, before.image, kept))
      continue;
    layers.set(hash, { ...before, usedAt: layer.usedAt });
    replaced.set(layer.image, before.image);
  }
  const chains = new Map(index.chains);
  for (const [key, { usedAt }] of chains) {
    // A layer is as old as it was for its first writer.
    const before = old.chains.get(key);
    if (before !== undefined && kept.has(before.digest)) chains.set(key, { ...before, usedAt });
  }
  return { ...index, layers, chains, copies: withSources(index.copies, replaced) };
}

/** Returns the index without layers whose blobs were not sent, if the additions have them. */
function withoutReplaced(index: ScopeIndex, additions: ScopeIndex, kept: ReadonlySet<string>): ScopeIndex {
  const layers = new Map(index.layers);
  const replaced = new Map<string, string>();
  for (const [hash, { image }] of additions.layers) {
    const before = layers.get(hash);
    if (before === undefined || before.image === image || isWhole(index, before.image, kept)) continue;
    layers.delete(hash);
    replaced.set(before.image, image);
  }
  return { ...index, layers, copies: withSources(index.copies, replaced) };
}

/** Returns copies that name other images in place of those that are replaced. */
function withSources(
  copies: ScopeIndex["copies"],
  replaced: ReadonlyMap<string, string>,
): ScopeIndex["copies"] {
  return new Map(
    copies
      .entries()
      .map(([hash, copy]) => [hash, { ...copy, source: replaced.get(copy.source) ?? copy.source }]),
  );
}

/** Returns the blobs of an index that the store has: the manifest keeps them there. */
export function blobsOf({ chains, mounts }: ScopeIndex, stored: ReadonlySet<string>): Descriptor[] {
  const blobs = new Map<string, Descriptor>();
  for (const { mediaType, digest, size } of [...chains.values(), ...mounts.values()])
    if (stored.has(digest)) blobs.set(digest, { mediaType, digest, size });
  return [...blobs.values()];
}
