import type { Clock } from "../../../clock.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import type { FactStore } from "../../../store/facts.ts";
import type { ScopeKeys } from "../signature.ts";
import { readArtifact, type StoredCache } from "./artifact.ts";
import type { CacheStore, CacheTarget, OpenTarget } from "./cache-store.ts";
import { type CacheWriter, createCacheWriter } from "./cache-writer.ts";
import { createLayerSender, type LayerSender } from "./send-layers.ts";
import type { SharingService } from "./shared-images.ts";

/** What sends layers: a service, and what this machine has noted of its layers. */
export interface SendingMachine {
  service: SharingService;
  facts: Pick<FactStore, "get" | "set">;
  clock: Clock;
}

/** Caches outside services, for all builds of a command: each is read once, and has one writer. */
export interface OutsideCaches extends Disposable {
  storeOf(address: string): BlobStore;
  /** Reads a cache, once. Returns `undefined` if there is none. */
  read(cache: CacheStore): Promise<StoredCache | undefined>;
  /** `trusts`: false if the store may have lost blobs that its manifest names. */
  senderTo(target: CacheTarget, machine: SendingMachine, trusts: boolean): LayerSender;
  writerOf(target: CacheTarget): CacheWriter;
  /** Writes all that was added. Rejects only if interrupted. */
  write(): Promise<void>;
}

export interface OutsideOptions extends ScopeKeys {
  openStore(address: string): BlobStore;
  openScratch(): Disposable & { path: string };
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

export function createOutsideCaches(options: OutsideOptions): OutsideCaches {
  const { verify, signal } = options;
  const stores = new Map<string, BlobStore>();
  const reads = new Map<string, Promise<StoredCache | undefined>>();
  const targets = new Map<string, OpenTarget>();
  const writers = new Map<string, CacheWriter>();
  const senders = new Map<SendingMachine["facts"], Map<string, LayerSender>>();
  const keyOf = ({ address, tag }: CacheStore) => `${address}:${tag}`;
  const storeOf = (address: string) => stores.getOrInsertComputed(address, () => options.openStore(address));

  function read(cache: CacheStore): Promise<StoredCache | undefined> {
    return reads.getOrInsertComputed(keyOf(cache), () => {
      const { address, tag, name } = cache;
      const begun = readArtifact(storeOf(address), tag, { name, verify, signal });
      begun.catch(() => undefined);
      return begun;
    });
  }

  return {
    storeOf,
    read,
    senderTo(target, machine, trusts) {
      const { address, compression } = target;
      const known = senders.getOrInsertComputed(machine.facts, () => new Map());
      return known.getOrInsertComputed(`${keyOf(target)} ${compression} ${trusts}`, () =>
        createLayerSender({
          ...{ ...options, ...machine, compression, store: storeOf(address) },
          kept: async () =>
            (trusts ? await read(target).catch(() => undefined) : undefined)?.kept ?? new Set(),
        }),
      );
    },
    writerOf(target) {
      const key = keyOf(target);
      const open = targets.getOrInsertComputed(key, () => ({ ...target, store: storeOf(target.address) }));
      // The build that keeps the most decides.
      const { keepBytes: limit = Number.POSITIVE_INFINITY } = target;
      if (limit > (open.keepBytes ?? Number.POSITIVE_INFINITY)) open.keepBytes = target.keepBytes;
      return writers.getOrInsertComputed(key, () =>
        createCacheWriter(open, { ...options, before: () => read(target).catch(() => undefined) }),
      );
    },
    async write() {
      await Promise.all(writers.values().map((writer) => writer.write()));
    },
    [Symbol.dispose]() {
      for (const known of senders.values()) for (const sender of known.values()) sender[Symbol.dispose]();
    },
  };
}
