import { type Clock, steadyTime } from "../../../clock.ts";
import {
  type BlobStore,
  ManifestConflictError,
  type StoredManifest,
  WrongBlobError,
} from "../../../registry/blob-store.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import type { CachePlace, IndexPart, PutIndex } from "../cache-place.ts";
import { UnusableIndexError } from "../index-file.ts";
import { type CacheManifest, prepareArtifact, readArtifactFile, readManifest } from "./artifact.ts";
import { type CacheStore, directoryIn, isDirectory } from "./cache-store.ts";
import { cleanDirectory } from "./clean-directory.ts";

interface PlaceOptions {
  store: BlobStore;
  clock: Clock;
  signal: AbortSignal;
}

/** The id of a manifest whose bytes don't have the digest that their store says. */
const noDigest = "damaged";

/** The longest wait for other writers, in milliseconds. */
const maxWait = 2000;

/**
 * The place of a cache in a registry, a directory or GitHub's cache: an artifact with the layers. A directory is locked while it is
 * written. A registry can't be asked to set a tag on the condition that nobody else has set it: the writer looks just before, and
 * again after twice the time that this has taken.
 */
export function createArtifactPlace(
  { address, tag, name, label }: CacheStore,
  { store, clock, signal }: PlaceOptions,
): CachePlace {
  const manifests = new Map<string, CacheManifest>();

  function partOf(manifest: StoredManifest): IndexPart {
    const part = { id: manifest.digest, label, isMain: true, staysListed: false };
    try {
      const read = manifests.getOrInsertComputed(part.id, () => readManifest(manifest.bytes));
      return { ...part, kept: read.kept };
    } catch (error) {
      if (!(error instanceof UnusableIndexError)) throw error;
      return { ...part, kept: new Set(), problem: error };
    }
  }

  function damagedPart({ message }: WrongBlobError): IndexPart {
    const problem = new UnusableIndexError(`it is damaged: ${message}`);
    return { id: noDigest, label, isMain: true, staysListed: false, kept: new Set(), problem };
  }

  async function list(): Promise<IndexPart[]> {
    try {
      const manifest = await store.getManifest(tag, signal);
      return manifest === undefined ? [] : [partOf(manifest)];
    } catch (error) {
      if (error instanceof WrongBlobError) return [damagedPart(error)];
      throw error;
    }
  }

  /** Returns true if the tag names what it did when it was read. What is still damaged is replaced, whatever digest it has. */
  async function isUnchanged(before: IndexPart | undefined): Promise<boolean> {
    const id = before?.id === noDigest ? (await list())[0]?.id : await store.findDigest(tag, signal);
    return id === before?.id;
  }

  /** Returns true if the tag still names the written manifest, and also if the store no longer responds. */
  async function isStillThere(digest: string): Promise<boolean> {
    try {
      return (await store.findDigest(tag, signal)) === digest;
    } catch {
      signal.throwIfAborted();
      return true;
    }
  }

  return {
    ...{ label, name, title: label, comparesBeforePut: true, list },
    minWriteIntervalMilliseconds: store.minWriteIntervalMilliseconds,
    lock: () => store.lock(signal),
    layers: { findExisting: (digests) => existingIn(store, digests, signal) },

    async get({ id }, file) {
      const blob = manifests.get(id)?.[file];
      return blob && readArtifactFile(store, blob, signal);
    },

    async put(files, { found, blobs, kept, isLocked }): Promise<PutIndex | undefined> {
      const manifest = await prepareArtifact(store, files, { blobs, kept }, signal);
      const since = steadyTime(clock);
      if (!isLocked && !(await isUnchanged(found.parts[0]))) return undefined;
      try {
        await store.putManifest(tag, manifest, signal);
      } catch (error) {
        if (error instanceof ManifestConflictError) return undefined;
        throw error;
      }
      if (isDirectory(address))
        // The cache is complete without it; the next build tries again.
        await cleanDirectory(directoryIn(address), clock.now()).catch(() => undefined);
      return {
        part: partOf(manifest),
        async settle() {
          await clock.sleep(Math.min(maxWait, 2 * (steadyTime(clock) - since)), signal);
          return isStillThere(manifest.digest);
        },
      };
    },
  };
}

const maxRequests = 8;

/** Returns the blobs that a store still has. */
async function existingIn(
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
