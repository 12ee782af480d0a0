import { type Clock, steadyTime } from "../../clock.ts";
import type { Descriptor } from "../../image/oci-layout.ts";
import { asRecord, parseRecord } from "../../service/http/json.ts";
import { ManifestConflictError, parseDescriptor, type StoredManifest, verified } from "../blob-store.ts";
import { RegistryError } from "../registry-error.ts";
import type { BranchIndexes } from "./branch-indexes.ts";
import type { CacheService } from "./cache-service.ts";
import type { EntryReader } from "./entry-reader.ts";
import { type BlobLocation, encodeIndexEntry } from "./index-entry.ts";
import type { PackedBlobs } from "./packed-blobs.ts";
import { chooseStalePacks } from "./stale-packs.ts";

interface Parts {
  service: CacheService;
  reader: EntryReader;
  indexes: BranchIndexes;
  blobs: PackedBlobs;
  clock: Clock;
}

/** Completes the pack and writes an index that names its blobs: two entries, whatever was built. */
export async function writeBranchIndex(
  tag: string,
  manifest: StoredManifest,
  { service, reader, indexes, blobs, clock }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const named = blobsIn(manifest.bytes);
  const embedded = new Map<string, Uint8Array>();
  for (const { digest } of named.filter((blob) => blob.isEmbedded)) {
    const bytes = blobs.held(digest) ?? (await indexes.readEmbedded(digest, signal));
    if (bytes !== undefined) embedded.set(digest, bytes);
  }
  const packed = named.filter(({ digest }) => !embedded.has(digest));
  for (const { digest } of packed) {
    const bytes = blobs.held(digest);
    if (bytes !== undefined) await blobs.append(digest, [bytes], { signal });
  }
  await requirePacks(packed);
  await moveStale(packed);
  await blobs.finish();

  const locations = new Map(packed.map(({ digest }) => [digest, placeOf(digest)]));
  const keys = new Set(locations.values().map(({ pack }) => pack));
  const packs = new Map([...keys].map((key) => [key, blobs.packs.get(key) ?? 0]));
  const eager = named.findIndex(({ isAnnotated }) => isAnnotated) + 1;
  const entry = await encodeIndexEntry({ manifest, packs, locations, embedded }, eager);
  const { bytes } = entry;
  const { key, url } = await reserve();
  await service.put(url, bytes, signal);
  await service.finalize(key, bytes.byteLength, signal);
  for (const { digest } of named) blobs.release(digest);
  indexes.add(tag, {
    ...{ key, manifest, bytes },
    directory: { manifest, packs, locations, embedded: entry.embedded },
  });

  function placeOf(digest: string): BlobLocation {
    const place = blobs.find(digest);
    // A registry, too, rejects a manifest whose blobs it lacks.
    if (place === undefined)
      throw new RegistryError(`the cache has lost ${digest}`, { status: 404, isTransient: false });
    return place;
  }

  /** Throws if a pack has been evicted: the service keeps 10 GB a repository, and evicts entries after a week without use. */
  async function requirePacks(wanted: readonly Descriptor[]): Promise<void> {
    const used = new Set(wanted.map(({ digest }) => placeOf(digest).pack));
    for (const pack of used)
      if (!blobs.isOpen(pack) && !(await reader.has(pack, signal))) blobs.forgetPack(pack);
    for (const { digest } of wanted) placeOf(digest);
  }

  /** Moves the blobs that are still used out of stale packs, so that the service can evict those. */
  async function moveStale(wanted: readonly Descriptor[]): Promise<void> {
    const live = new Map<string, Descriptor[]>();
    for (const blob of wanted) live.getOrInsertComputed(placeOf(blob.digest).pack, () => []).push(blob);
    const complete = [...live].filter(([pack]) => !blobs.isOpen(pack));
    for (const pack of chooseStalePacks(complete, blobs.packs))
      for (const blob of live.get(pack) ?? []) {
        const { offset, length } = placeOf(blob.digest);
        const content = verified(
          reader.read(pack, offset, offset + length, signal),
          blob,
          `the pack ${pack}`,
        );
        await blobs.append(blob.digest, content, { signal, moves: true });
      }
  }

  /** Reserves the number after the newest index. Only one writer can get it. */
  async function reserve(): Promise<{ key: string; url: string }> {
    for (;;) {
      const { key, number } = indexes.nextKey(tag);
      const url = await service.reserve(key, signal);
      if (url !== undefined) return { key, url };
      const isComplete = await waitForOther(key);
      indexes.skipNumber(tag, number);
      if (isComplete) throw new ManifestConflictError(`another build has written ${key}`);
      // Most likely its writer was killed, and the number stays taken.
    }
  }

  async function waitForOther(key: string): Promise<boolean> {
    const since = steadyTime(clock);
    for (let wait = firstWaitMilliseconds; ; wait *= 2) {
      if ((await service.find(key, "exact", signal)) !== undefined) return true;
      if (steadyTime(clock) - since + wait > maxWaitMilliseconds) return false;
      await clock.sleep(wait, signal);
    }
  }
}

/** Another writer completes a reserved index within two short requests. */
const maxWaitMilliseconds = 15_000;
const firstWaitMilliseconds = 250;

interface NamedBlob extends Descriptor {
  isAnnotated: boolean;
  /** True for a blob that each reader needs: the index itself contains it. */
  isEmbedded: boolean;
}

/** Returns the blobs that a manifest names, in its order. */
function blobsIn(bytes: Uint8Array): NamedBlob[] {
  const manifest = parseRecord(bytes);
  const layers: unknown[] = Array.isArray(manifest?.layers) ? manifest.layers : [];
  const found = new Map<string, NamedBlob>();
  for (const [at, value] of [manifest?.config, ...layers].entries()) {
    const descriptor = parseDescriptor(value);
    const isAnnotated = asRecord(asRecord(value)?.annotations) !== undefined;
    if (descriptor === undefined || found.has(descriptor.digest)) continue;
    found.set(descriptor.digest, { ...descriptor, isAnnotated, isEmbedded: at === 0 || isAnnotated });
  }
  return [...found.values()];
}
