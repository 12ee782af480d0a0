import type { Compression } from "../../image/compression.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { createPackedLayers, knownBlob, type LayerContent } from "../../image/layer-writer.ts";
import type { BlobStore } from "../../registry/blob-store.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import { type ImageMetadataCache, notePlace, placeOfLayer, registryOf } from "../../store/image-metadata.ts";
import { tap } from "../../streams.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch } from "../process/scratch.ts";

interface LayersJob {
  content: Pick<ImageToWrite, "layers" | "recompresses">;
  compression: Compression;
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
  /** Called when all layers are known, while some may still be sent. `isNew`: some were never pushed before. */
  onKnown: (layers: readonly LayerBlob[], isNew: boolean, signal: AbortSignal) => Promise<void>;
  /** Called with the number of bytes of blobs that have been sent, and of those that are known to be needed. */
  onSent: (bytes: number, total: number) => void;
  runtime: Pick<Runtime, "environment" | "signal" | "pushes">;
}

/** Docker and skopeo send as many at once. */
const maxTransfers = 6;
/** Sending a smaller layer again takes as long as asking for it. */
const askedBytes = 64 * 1024;

/**
 * Sends the layers that a repository lacks, several at once. Those that another repository of the registry has are mounted, and
 * only the others are read. Of what several pushes of a command want, each is sent once. Returns how many did not have to be sent. `isStale`: a layer's blob was another one than it was known to be,
 * which only another call gets right.
 */
export async function pushLayers(
  store: BlobStore,
  job: LayersJob,
): Promise<{ reused: number; sentBytes: number; isStale: boolean }> {
  const { content, compression, imageMetadata, runtime } = job;
  const blobs: LayerBlob[] = [];
  let unknown = content.layers.length;
  let [isNew, isStale] = [false, false];
  let [reused, sent, total] = [0, 0, 0];
  using packed = createPackedLayers({
    compression,
    recompresses: content.recompresses,
    openScratch: () => openScratch("push", runtime.environment),
  });

  /** Returns the blob that is sent for `key`, by whichever push of this command comes first. */
  async function once(
    key: string,
    push: () => Promise<LayerBlob>,
    signal: AbortSignal,
  ): Promise<{ blob: LayerBlob; isOwn: boolean }> {
    if (runtime.pushes === undefined) return { blob: await push(), isOwn: true };
    for (;;) {
      let isOwn = false;
      const flight = runtime.pushes(`${store.address} ${key}`, () => {
        isOwn = true;
        return push();
      });
      if (isOwn) return { blob: await flight, isOwn };
      try {
        const blob = await rejectOnAbort(signal, flight);
        reused += 1;
        return { blob, isOwn };
      } catch {
        // The other push may have failed for a reason of its own.
        signal.throwIfAborted();
      }
    }
  }

  /** Notes a layer's blob. Resolves at once, unless it is the last that was unknown. */
  async function note(index: number, blob: LayerBlob, signal: AbortSignal): Promise<void> {
    blobs[index] = blob;
    unknown -= 1;
    if (unknown === 0) await job.onKnown(blobs, isNew, signal);
  }

  async function send(
    blob: LayerBlob,
    open: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    total += blob.size;
    const counted = () =>
      tap(open(), (chunk) => {
        sent += chunk.byteLength;
        job.onSent(sent, total);
      });
    await store.putBlob(blob, counted, signal);
  }

  /** Sends a layer whose blob is known, unless the registry has it. Returns the blob that it has then. */
  async function pushKnown(layer: LayerContent, blob: LayerBlob, signal: AbortSignal): Promise<LayerBlob> {
    if (await isThere(store, blob, sourcesOf(layer, store, imageMetadata), signal)) reused += 1;
    else if (blob === layer.stored) await send(blob, () => opened(layer), signal);
    else {
      using ready = await packed.pack(layer);
      layer.onWritten?.(ready.blob);
      await send(ready.blob, ready.open, signal);
      return ready.blob;
    }
    return blob;
  }

  async function pushUnknown(layer: LayerContent, index: number, signal: AbortSignal): Promise<LayerBlob> {
    isNew = true;
    using ready = await packed.pack(layer);
    const { blob } = ready;
    layer.onWritten?.(blob);
    // Another layer may have the same content, also one of another machine.
    const push = async () => {
      if (blob.size >= askedBytes && (await store.hasBlob(blob, signal))) reused += 1;
      else await send(blob, ready.open, signal);
      return blob;
    };
    await Promise.all([once(blob.digest, push, signal), note(index, blob, signal)]);
    return blob;
  }

  const work = async ([index, layer]: [number, LayerContent], signal: AbortSignal) => {
    const known = knownBlob(layer, content, compression);
    if (known === undefined) {
      const push = () => pushUnknown(layer, index, signal);
      const key = layer.id && `layer ${layer.id} ${JSON.stringify(compression)} ${content.recompresses}`;
      const { blob, isOwn } =
        key === undefined ? { blob: await push(), isOwn: true } : await once(key, push, signal);
      if (!isOwn) await note(index, blob, signal);
    } else {
      const push = async () => {
        const { blob } = await once(known.digest, () => pushKnown(layer, known, signal), signal);
        // An earlier version of bough may have packed it differently.
        isStale ||= blob.digest !== known.digest;
      };
      await Promise.all([push(), note(index, known, signal)]);
    }
    if (layer.id !== undefined) notePlace(imageMetadata, layer.id, store.address);
  };
  if (content.layers.length === 0) await job.onKnown([], true, runtime.signal);
  await forEachConcurrently(content.layers.entries(), maxTransfers, runtime.signal, work);
  return { reused, sentBytes: sent, isStale };
}

async function isThere(
  store: BlobStore,
  blob: LayerBlob,
  sources: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  if (await store.hasBlob(blob, signal)) return true;
  for (const source of sources) if (await store.mountBlob(blob, source, signal)) return true;
  return false;
}

async function* opened({ open }: LayerContent): AsyncGenerator<Uint8Array> {
  yield* await open();
}

/** Returns the other repositories of the same registry that may have a layer. */
function sourcesOf(
  { id, sources = [] }: LayerContent,
  { address }: BlobStore,
  imageMetadata: LayersJob["imageMetadata"],
): string[] {
  const registry = registryOf(address);
  const sent = id === undefined ? undefined : placeOfLayer(imageMetadata, id, address);
  return [...new Set([...(sent === undefined ? [] : [sent]), ...sources])]
    .filter((source) => source !== address && registryOf(source) === registry)
    .map((source) => source.slice(registry.length + 1));
}
