import { type Clock, steadyTime } from "../../../clock.ts";
import type { Descriptor } from "../../../image/oci-layout.ts";
import {
  type BlobStore,
  ManifestConflictError,
  type StoredManifest,
  WrongBlobError,
} from "../../../registry/blob-store.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import { version } from "../../../version.ts";
import { encodeIndex, type Sign, UnusableIndexError, type Verify } from "../index-file.ts";
import { emptyIndex, formatLayers, mergeIndexes, type ScopeIndex } from "../scope-index.ts";
import { needsWrite } from "../write-scope.ts";
import {
  ForeignArtifactError,
  prepareArtifact,
  readArtifactSteps,
  readCache,
  type StoredCache,
} from "./artifact.ts";
import { boundIndex } from "./bound-index.ts";
import type { OpenTarget } from "./cache-store.ts";
import { layersOfChain } from "./portable-image.ts";
import type { Additions } from "./translate.ts";

interface WriteOptions {
  sign: Sign | undefined;
  verify: Verify | undefined;
  /** Names of images that can't be had any more. */
  gone: ReadonlySet<string>;
  /** True if the store is believed to have what it had. */
  trusts: boolean;
  clock: Clock;
  signal: AbortSignal;
  warn(text: string): void;
}

interface WrittenCache {
  added: number;
  all: number;
  /** The cache as it is now. */
  stored: StoredCache;
}

/** The limit of rounds; fewer builds write at once. */
const maxRounds = 10;

/** The longest wait for other writers, in milliseconds. */
const maxWait = 2000;

/**
 * Adds to a cache: merges, and writes unless another writer has been faster, until nothing is missing. A directory is locked
 * meanwhile. A registry can't be asked to set a tag on the condition that nobody else has set it: the writer looks just before, and
 * again after twice the time that this has taken. It warns if others replace what it writes again and again.
 *
 * @returns `undefined` if there was nothing to write
 */
export async function writeCache(
  target: OpenTarget,
  additions: Additions,
  before: StoredCache | undefined,
  options: WriteOptions,
): Promise<WrittenCache | undefined> {
  const { store, tag, name, label } = target;
  const { sign, clock, signal, warn } = options;
  let known: Found = { digest: before?.digest, cache: before };
  let written: WrittenCache | undefined;
  for (let round = 0; round < maxRounds; round++) {
    using lock = await store.lock(signal);
    if (round > 0 || lock !== undefined || before === undefined)
      known = await look(target, known.cache, options);
    const { cache, refusal = refusalOf(cache, options) } = known;
    if (refusal !== undefined) {
      warn(`cache: nothing is written to ${label}: ${refusal}`);
      return undefined;
    }
    const { merge, old, whole, bounds } = await prepareMerge(cache, additions, target, options);
    if (!needsWrite(old, merge(old), whole, bounds.now, options.gone)) return written;
    if (cache !== undefined) await readArtifactSteps(store, cache, signal);
    const index = merge(cache?.decoded.index ?? emptyIndex());
    const header = { scope: name, by: version, at: bounds.now, merged: [] };
    const { manifest, kept, steps } = await prepareArtifact(
      store,
      encodeIndex(index, header, sign),
      { blobs: blobsOf(index, bounds.stored), kept: bounds.kept },
      signal,
    );
    const since = steadyTime(clock);
    if (lock === undefined && (await store.findDigest(tag, signal)) !== known.digest) continue;
    if (!(await putUnlessConflict(target, manifest, signal))) continue;
    const added = [...index.layers.keys()].filter((hash) => !old.layers.has(hash)).length;
    const signed = { isSigned: sign !== undefined, verifiedKey: undefined };
    const decoded = { header, index, ...signed, stepsDigest: "", hasSteps: true };
    const stored = { digest: manifest.digest, decoded, kept, steps };
    written = { added: written?.added ?? added, all: index.layers.size, stored };
    if (lock !== undefined) return written;
    await clock.sleep(Math.min(maxWait, 2 * (steadyTime(clock) - since)), signal);
    if (await isStillThere(manifest.digest, target, signal)) return written;
  }
  const latest = (await look(target, known.cache, options)).cache?.decoded.index ?? emptyIndex();
  const missing = additions.index.layers.keys().filter((hash) => !latest.layers.has(hash));
  warn(
    `cache: other builds have replaced ${label} ${maxRounds} times: ${[...missing].length} of ${formatLayers(additions.index.layers.size)} of this build are not in it`,
  );
  return written;
}

/** What a tag names: `digest` of the manifest, whatever it is. `refusal`: why it must not be replaced. */
interface Found {
  digest: string | undefined;
  cache: StoredCache | undefined;
  refusal?: string | undefined;
}

/** @param last the cache as it was known before */
async function look(
  { store, tag, name }: OpenTarget,
  last: StoredCache | undefined,
  { verify, signal }: WriteOptions,
): Promise<Found> {
  const manifest = await store.getManifest(tag, signal).catch((error: unknown) => {
    if (error instanceof WrongBlobError) return undefined;
    throw error;
  });
  if (manifest === undefined) return { digest: undefined, cache: undefined };
  const { digest } = manifest;
  try {
    return { digest, cache: await readCache(manifest, store, { name, verify, signal, last }) };
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
    const mustStay = error.isNewer || error instanceof ForeignArtifactError;
    // What is damaged is replaced.
    return { digest, cache: undefined, refusal: mustStay ? error.message : undefined };
  }
}

function refusalOf(cache: StoredCache | undefined, { sign }: WriteOptions): string | undefined {
  return cache?.decoded.isSigned === true && sign === undefined
    ? "it is signed, and this build has no --cache-sign"
    : undefined;
}

/** Returns false if another writer has been faster. */
async function putUnlessConflict(
  { store, tag }: OpenTarget,
  manifest: StoredManifest,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await store.putManifest(tag, manifest, signal);
    return true;
  } catch (error) {
    if (error instanceof ManifestConflictError) return false;
    throw error;
  }
}

/** What was written stays written if the store does not respond any more. */
async function isStillThere(digest: string, { store, tag }: OpenTarget, signal: AbortSignal) {
  try {
    return (await store.findDigest(tag, signal)) === digest;
  } catch {
    signal.throwIfAborted();
    return true;
  }
}

async function prepareMerge(
  cache: StoredCache | undefined,
  additions: Additions,
  { store, keepBytes }: OpenTarget,
  { trusts, gone, clock, signal }: WriteOptions,
) {
  const old = cache?.decoded.index ?? emptyIndex();
  const listed = cache?.kept ?? new Set<string>();
  const kept = trusts ? listed : await stillIn(store, listed, signal);
  const whole = withWholeImages(old, additions, kept);
  const bounds = { now: clock.now(), gone, keepBytes, kept, stored: kept.union(additions.sent) };
  const merge = (index: ScopeIndex) =>
    boundIndex(mergeIndexes(withoutReplaced(index, whole, kept), whole), bounds);
  return { old, whole, bounds, merge };
}

/** Returns what two builds add. Of an image that only one of them has sent, that one counts. */
export function joinAdditions(one: Additions, other: Additions): Additions {
  const whole = withWholeImages(one.index, other, one.sent);
  const index = mergeIndexes(withoutReplaced(one.index, whole, one.sent), whole);
  return { index, sent: one.sent.union(other.sent) };
}

const maxRequests = 8;

/** Returns the blobs that a store still has. */
async function stillIn(
  store: BlobStore,
  digests: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  await forEachConcurrently(digests, maxRequests, signal, async (digest) => {
    if (await store.hasBlob({ digest }, signal)) found.add(digest);
  });
  return found;
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
function blobsOf({ chains, mounts }: ScopeIndex, stored: ReadonlySet<string>): Descriptor[] {
  const blobs = new Map<string, Descriptor>();
  for (const { mediaType, digest, size } of [...chains.values(), ...mounts.values()])
    if (stored.has(digest)) blobs.set(digest, { mediaType, digest, size });
  return [...blobs.values()];
}
