import type { Compression } from "../../image/compress.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { knownBlob, type LayerContent } from "../../image/layer-writer.ts";
import type { BlobStore } from "../../registry/blob-store.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { FactStore } from "../../store/facts.ts";
import { tap } from "../../streams.ts";
import type { Runtime } from "../process/runtime.ts";
import { createPackedLayers } from "./packed-layers.ts";

export interface LayersJob {
  content: Pick<ImageToWrite, "layers" | "recompresses">;
  compression: Compression;
  facts: Pick<FactStore, "get" | "set">;
  /** Called with the number of bytes of blobs that have been sent, and of those that are known to be needed. */
  onSent: (bytes: number, total: number) => void;
  runtime: Pick<Runtime, "environment" | "signal">;
}

/** As many as docker and skopeo send at once. */
const maxTransfers = 6;

/**
 * Sends the layers that a repository lacks, several at once. Those that another repository of the registry has are mounted, and
 * only the others are read. Returns all of them, and how many did not have to be sent.
 */
export async function pushLayers(
  store: BlobStore,
  job: LayersJob,
): Promise<{ layers: LayerBlob[]; reused: number }> {
  const { content, compression, facts, runtime } = job;
  const layers: LayerBlob[] = [];
  let [reused, sent, total] = [0, 0, 0];
  using packed = createPackedLayers({
    compression,
    recompresses: content.recompresses,
    environment: runtime.environment,
  });
  const counted = (chunks: AsyncIterable<Uint8Array>) =>
    tap(chunks, (chunk) => {
      sent += chunk.byteLength;
      job.onSent(sent, total);
    });

  async function send(
    blob: LayerBlob,
    open: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    total += blob.size;
    await store.putBlob(blob, () => counted(open()), signal);
  }

  /** Returns a layer's blob, which the repository has then. */
  async function push(layer: LayerContent, signal: AbortSignal): Promise<LayerBlob> {
    const known = knownBlob(layer, content, compression);
    if (known !== undefined && (await isThere(store, known, sourcesOf(layer, store, facts), signal))) {
      reused += 1;
      return known;
    }
    if (known !== undefined && known === layer.stored) {
      await send(known, () => opened(layer), signal);
      return known;
    }
    using ready = await packed.pack(layer);
    layer.onWritten?.(ready.blob);
    // Different layers may have the same content.
    if (known === undefined && (await store.hasBlob(ready.blob, signal))) reused += 1;
    else await send(ready.blob, ready.open, signal);
    return ready.blob;
  }

  const work = async ([index, layer]: [number, LayerContent], signal: AbortSignal) => {
    layers[index] = await push(layer, signal);
    noteSource(layer, store, facts);
  };
  await forEachConcurrently(content.layers.entries(), maxTransfers, runtime.signal, work);
  return { layers, reused };
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
  facts: LayersJob["facts"],
): string[] {
  const registry = registryOf(address);
  const pushed = id === undefined ? undefined : facts.get(id, questionAbout(registry));
  return [...new Set([...(pushed === undefined ? [] : [pushed]), ...sources])]
    .filter((source) => source !== address && registryOf(source) === registry)
    .map((source) => source.slice(registry.length + 1));
}

/** Notes where the layer is: a push to another repository of the registry mounts it from there. */
function noteSource({ id }: LayerContent, { address }: BlobStore, facts: LayersJob["facts"]): void {
  const question = questionAbout(registryOf(address));
  if (id !== undefined && facts.get(id, question) === undefined) facts.set(id, question, address);
}

function questionAbout(registry: string): string {
  return `repository of ${registry}`;
}

/** Returns `docker://HOST` */
function registryOf(address: string): string {
  return /^docker:\/\/[^/]+/.exec(address)?.[0] ?? address;
}
