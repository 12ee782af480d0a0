import type { Clock } from "../../../clock.ts";
import type { Descriptor } from "../../../image/oci-layout.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import { version } from "../../../version.ts";
import { encodeIndex, type Sign, UnusableIndexError, type Verify } from "../index-file.ts";
import { emptyIndex, mergeIndexes, type ScopeIndex } from "../scope-index.ts";
import { needsWrite } from "../write-scope.ts";
import {
  ForeignArtifactError,
  readArtifact,
  readArtifactSteps,
  type StoredCache,
  writeArtifact,
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
}

/** The limit of rounds; fewer builds write at once. */
const maxRounds = 10;

/**
 * Adds to a cache: reads it, merges, writes, and looks again after as long as that has taken, until nothing is missing. A registry
 * can't be asked to set a tag on the condition that nobody else has set it meanwhile.
 *
 * @returns `undefined` if there was nothing to write
 */
export async function writeCache(
  { store, tag, name, label, keepBytes }: OpenTarget,
  additions: Additions,
  before: StoredCache | undefined,
  { sign, verify, gone, trusts, clock, signal, warn }: WriteOptions,
): Promise<WrittenCache | undefined> {
  let known = before;
  let written: WrittenCache | undefined;
  for (let round = 0; round < maxRounds; round++) {
    const since = clock.now();
    const stored = await readAgain(known);
    if (stored === "unusable") return undefined;
    if (stored?.decoded.isSigned === true && sign === undefined) {
      warn(`cache: nothing is written to ${label}: it is signed, and this build has no --cache-sign`);
      return undefined;
    }
    known = stored;
    const old = stored?.decoded.index ?? emptyIndex();
    const listed = stored?.kept ?? new Set<string>();
    const kept = trusts ? listed : await stillIn(store, listed, signal);
    const bounds = { now: clock.now(), gone, keepBytes, stored: kept.union(additions.sent) };
    const whole = withWholeImages(old, additions, kept);
    const merge = (index: ScopeIndex) =>
      boundIndex(mergeIndexes(withoutReplaced(index, whole, kept), whole), bounds);
    const next = merge(old);
    if (!needsWrite(old, next, whole, bounds.now, gone)) return written;
    if (stored !== undefined) await readArtifactSteps(store, stored, signal);
    const index = merge(stored?.decoded.index ?? emptyIndex());
    const header = { scope: name, by: version, at: bounds.now, merged: [] };
    const digest = await writeArtifact(
      store,
      tag,
      encodeIndex(index, header, sign),
      { blobs: blobsOf(index, bounds.stored), kept },
      signal,
    );
    const added = [...index.layers.keys()].filter((hash) => !old.layers.has(hash)).length;
    written ??= { added, all: index.layers.size };
    known = undefined;
    await clock.sleep(Math.min(maxWait, 2 * (clock.now() - since)), signal);
    if (await isStillThere(digest)) return written;
  }
  return written;

  /** What was written stays written if the store does not respond any more. */
  async function isStillThere(digest: string): Promise<boolean> {
    try {
      return (await store.getManifest(tag, signal))?.digest === digest;
    } catch {
      signal.throwIfAborted();
      return true;
    }
  }

  async function readAgain(last: StoredCache | undefined): Promise<StoredCache | undefined | "unusable"> {
    try {
      return await readArtifact(store, tag, { name, verify, signal, last });
    } catch (error) {
      if (!(error instanceof UnusableIndexError)) throw error;
      if (error.isNewer || error instanceof ForeignArtifactError) {
        warn(`cache: nothing is written to ${label}: ${error.message}`);
        return "unusable";
      }
      return undefined;
    }
  }
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

/** The longest wait for other writers, in milliseconds. */
const maxWait = 2000;

function isWhole(index: ScopeIndex, image: string, kept: ReadonlySet<string>): boolean {
  const found = index.images.get(image);
  const layers = found && layersOfChain(index, found.chain);
  return layers?.every(({ digest }) => kept.has(digest)) === true;
}

/** Returns the additions, with images whose layers the store has in place of those whose layers were not sent (`mode=min`). */
function withWholeImages(old: ScopeIndex, { index, sent }: Additions, kept: ReadonlySet<string>): ScopeIndex {
  const stored = kept.union(sent);
  const layers = new Map(index.layers);
  for (const [hash, layer] of layers) {
    const before = old.layers.get(hash);
    if (before === undefined || isWhole(index, layer.image, stored) || !isWhole(old, before.image, kept))
      continue;
    layers.set(hash, { ...before, usedAt: layer.usedAt });
  }
  const chains = new Map(index.chains);
  for (const [key, { usedAt }] of chains) {
    // A layer is as old as it was for its first writer.
    const before = old.chains.get(key);
    if (before !== undefined && kept.has(before.digest)) chains.set(key, { ...before, usedAt });
  }
  return { ...index, layers, chains };
}

/** Returns the index without layers whose blobs were not sent, if the additions have them. */
function withoutReplaced(index: ScopeIndex, additions: ScopeIndex, kept: ReadonlySet<string>): ScopeIndex {
  const layers = new Map(index.layers);
  for (const [hash, { image }] of additions.layers) {
    const before = layers.get(hash);
    if (before !== undefined && before.image !== image && !isWhole(index, before.image, kept))
      layers.delete(hash);
  }
  return { ...index, layers };
}

/** Returns the blobs of an index that the store has: the manifest keeps them there. */
function blobsOf({ chains, mounts }: ScopeIndex, stored: ReadonlySet<string>): Descriptor[] {
  const blobs = new Map<string, Descriptor>();
  for (const { mediaType, digest, size } of [...chains.values(), ...mounts.values()])
    if (stored.has(digest)) blobs.set(digest, { mediaType, digest, size });
  return [...blobs.values()];
}
