import type { Clock } from "../../../clock.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import type { ImageMetadataCache } from "../../../store/image-metadata.ts";
import type { FoundIndex } from "../cache-place.ts";
import type { CacheStore, CacheTarget } from "./cache-store.ts";
import { createLayerSender, type LayerSender } from "./send-layers.ts";
import type { SharingService } from "./shared-images.ts";

/** The service whose layers are sent, and this machine's facts about them. */
export interface SendingMachine {
  service: SharingService;
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
}

/** The stores of caches outside services, and the senders of layers to them, for all builds of a command. */
export interface BlobStores extends Disposable {
  open(address: string): BlobStore;
  /** @param found returns what the cache has; `undefined` if the store may have lost blobs that its manifest names */
  senderTo(
    target: CacheTarget,
    machine: SendingMachine,
    found: (() => Promise<FoundIndex>) | undefined,
  ): LayerSender;
}

export interface StoreOptions {
  openStore(address: string): BlobStore;
  openScratch(): Disposable & { path: string };
  clock: Clock;
  signal: AbortSignal;
}

export function storeKeyOf({ address, tag }: CacheStore): string {
  return `${address}:${tag}`;
}

export function createBlobStores({ openStore, openScratch, signal }: StoreOptions): BlobStores {
  const stores = new Map<string, BlobStore>();
  const senders = new Map<SendingMachine["imageMetadata"], Map<string, LayerSender>>();
  const open = (address: string) => stores.getOrInsertComputed(address, () => openStore(address));

  return {
    open,
    senderTo(target, { service, imageMetadata }, found) {
      const { address, compression } = target;
      const known = senders.getOrInsertComputed(imageMetadata, () => new Map());
      return known.getOrInsertComputed(`${storeKeyOf(target)} ${compression} ${found !== undefined}`, () =>
        createLayerSender({
          ...{ service, imageMetadata, compression, openScratch, signal, store: open(address) },
          kept: async () => (await found?.().catch(() => undefined))?.kept ?? new Set(),
        }),
      );
    },
    [Symbol.dispose]() {
      for (const known of senders.values()) for (const sender of known.values()) sender[Symbol.dispose]();
    },
  };
}
