import type { Compression } from "../../../image/compression.ts";
import type { LayerBlob } from "../../../image/layer-header.ts";
import { createPackedLayers, type LayerContent } from "../../../image/layer-writer.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import { createSemaphore } from "../../../semaphore.ts";
import type { ImageLayer } from "../../../service/wire/image.ts";
import { type ImageMetadataCache, notePlace, placeOfLayer } from "../../../store/image-metadata.ts";
import type { PortableLayer } from "./portable-image.ts";
import type { SharingService } from "./shared-images.ts";

interface SenderOptions {
  service: SharingService;
  store: BlobStore;
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
  compression: Compression;
  /** Makes a place for large temporary files. */
  openScratch(): Disposable & { path: string };
  /** Digests of the blobs that the store is known to have. */
  kept(): Promise<ReadonlySet<string>>;
  signal: AbortSignal;
}

/** Packs layers and sends them to a store, each once. */
export interface LayerSender extends Disposable {
  /** Sends an image's layers, the lowest first, as far as the store lacks them. */
  send(image: string): Promise<PortableLayer[]>;
  /** Returns the layers; `undefined` for the blob of one that would have to be packed first. */
  describe(image: string): Promise<{ id: string; createdAt: number; blob: LayerBlob | undefined }[]>;
  /** Sends the archive of a cache mount, unless the store has it. Rejects if it is larger than `maxBytes`, compressed. */
  sendCache(key: string, maxBytes: number): Promise<LayerBlob>;
}

/** Layers in progress at once: one is packed while the others are sent. */
const maxLayers = 4;
/** Layers at once that the store is asked for. */
const maxLooks = 8;

export function createLayerSender(options: SenderOptions): LayerSender {
  const { service, store, imageMetadata, compression, signal } = options;
  const slots = createSemaphore(maxLayers);
  const looks = createSemaphore(maxLooks);
  const sent = new Map<string, Promise<LayerBlob>>();
  const packed = createPackedLayers(options);
  const question = `layer blob ${compression}`;

  function knownBlob({ id, blob }: ImageLayer): LayerBlob | undefined {
    if (blob !== undefined)
      return { mediaType: blob.media_type, digest: blob.digest, size: blob.size, diffId: blob.diff_id };
    const text = imageMetadata.get(id, question);
    return text === undefined ? undefined : (JSON.parse(text) as LayerBlob);
  }

  async function sendLayer(image: string, layer: ImageLayer): Promise<LayerBlob> {
    const known = knownBlob(layer);
    if (known !== undefined && (await has(known, layer))) return known;
    const give = await slots.acquire();
    try {
      signal.throwIfAborted();
      const open = () => chunksOf(() => service.openLayer(image, layer.id, undefined));
      const isStored = layer.blob !== undefined && known !== undefined;
      const blob = isStored ? await put(known, open) : await packAndSend(image, layer);
      // A push to the same registry need not send it again.
      notePlace(imageMetadata, layer.id, store.address);
      return blob;
    } finally {
      give();
    }
  }

  async function has(blob: LayerBlob, layer: ImageLayer): Promise<boolean> {
    if ((await options.kept()).has(blob.digest)) return true;
    const give = await looks.acquire();
    try {
      return await isInStore(blob, layer, options);
    } finally {
      give();
    }
  }

  async function packAndSend(image: string, { id }: ImageLayer): Promise<LayerBlob> {
    const blob = await sendPacked({
      pack: (job) => service.packLayer(image, id, { ...job, clampTo: undefined }),
      open: () => service.openLayer(image, id, undefined),
    });
    imageMetadata.set(id, question, JSON.stringify(blob));
    return blob;
  }

  async function sendPacked(layer: LayerContent, maxBytes?: number): Promise<LayerBlob> {
    const open = async () => watched(await layer.open(), signal);
    using ready = await packed.pack({ ...layer, open }, maxBytes);
    if (!(await store.hasBlob(ready.blob, signal))) await put(ready.blob, ready.open);
    return ready.blob;
  }

  async function put(blob: LayerBlob, content: () => AsyncIterable<Uint8Array>): Promise<LayerBlob> {
    await store.putBlob(blob, content, signal);
    return blob;
  }

  function sendOnce(image: string, layer: ImageLayer): Promise<LayerBlob> {
    return sent.getOrInsertComputed(layer.id, () => {
      const begun = sendLayer(image, layer);
      // The callers waiting for this attempt get the error; later callers retry.
      begun.catch(() => sent.delete(layer.id));
      return begun;
    });
  }

  return {
    async send(image) {
      const layers = await service.listLayers(image);
      return Promise.all(
        layers.map(async (layer) => ({ ...(await sendOnce(image, layer)), createdAt: timeOf(layer) })),
      );
    },
    async describe(image) {
      const layers = await service.listLayers(image);
      return layers.map((layer) => ({ id: layer.id, createdAt: timeOf(layer), blob: knownBlob(layer) }));
    },
    async sendCache(key, maxBytes) {
      const give = await slots.acquire();
      try {
        signal.throwIfAborted();
        return await sendPacked({ open: () => service.openCache(key) }, maxBytes);
      } finally {
        give();
      }
    },
    [Symbol.dispose]() {
      packed[Symbol.dispose]();
    },
  };
}

/** Returns true if the store has a blob, also if it can take it from another repository of its registry. */
async function isInStore(
  blob: LayerBlob,
  { id, source }: ImageLayer,
  { imageMetadata, store, signal }: Pick<SenderOptions, "imageMetadata" | "store" | "signal">,
): Promise<boolean> {
  // An image with the layer may have been pushed.
  for (const place of new Set([source, placeOfLayer(imageMetadata, id, store.address)])) {
    const from = place === undefined ? undefined : repositoryBeside(place, store.address);
    if (from !== undefined && (await store.mountBlob(blob, from, signal))) return true;
  }
  return store.hasBlob(blob, signal);
}

/** Returns the name of a repository if it is another one of the same registry, which may be able to mount its blobs. */
function repositoryBeside(source: string, address: string): string | undefined {
  const [, host, name] = /^docker:\/\/([^/]+)\/(.+)$/.exec(source) ?? [];
  return host !== undefined && address.startsWith(`docker://${host}/`) && address !== source
    ? name
    : undefined;
}

function timeOf({ created_at }: ImageLayer): number {
  // Images say the year 1 for a time that nobody knows.
  return Math.max(0, Date.parse(created_at) || 0);
}

/** Opens a stream when it is first read: an unread one would stay open, and its error would be unhandled. */
async function* chunksOf(open: () => Promise<ReadableStream<Uint8Array>>): AsyncGenerator<Uint8Array> {
  yield* await open();
}

async function* watched(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
  }
}
