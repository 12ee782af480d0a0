import type { Compression } from "../../image/compression.ts";
import {
  type ImageToWrite,
  type WrittenImage,
  writeDockerArchive,
  writeOciLayout,
} from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { knownBlob, type LayerContent } from "../../image/layer-writer.ts";
import { containerdNameAnnotation, nameAnnotation } from "../../image/oci-layout.ts";
import { writeToArchive } from "../../image/output-files.ts";
import { normalizedName } from "../../registry/repository.ts";
import { createSemaphore } from "../../semaphore.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch, withScratchHint } from "../process/scratch.ts";
import { type Daemon, DaemonError } from "./daemon.ts";
import { withKnownLayers } from "./image-source.ts";

interface LoadJob {
  content: ImageToWrite;
  /** `NAME:TAG`; an image without names has only its id. */
  names: readonly string[];
  compression: Compression;
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
  onProgress: (message: string) => void;
  onReused: (layers: number) => void;
  runtime: Pick<Runtime, "environment" | "signal">;
}

/** Images that are baked together share layers: each is given when docker has the ones before. */
const turn = createSemaphore(1);

/** Gives an image to Docker's daemon, without the layers that it has. */
export async function loadImage(daemon: Daemon, job: LoadJob): Promise<WrittenImage> {
  const release = await turn.acquire(job.runtime.signal);
  try {
    return await loadNow(daemon, job);
  } finally {
    release();
  }
}

async function loadNow(daemon: Daemon, job: LoadJob): Promise<WrittenImage> {
  const { imageMetadata } = job;
  // A store of unpacked layers takes plain ones.
  const own = { ...job, compression: daemon.hasContentStore ? job.compression : ("none" as const) };
  const content = withKnownLayers(job.content, imageMetadata, own.compression);
  const there = await findLayers(daemon, content, own);
  job.onReused(there.filter((blob) => blob !== undefined).length);
  const written = await send(daemon, content, there, own).catch((error: unknown) => {
    job.runtime.signal.throwIfAborted();
    // Another process may have removed what was there.
    if (!(error instanceof DaemonError) || there.every((blob) => blob === undefined)) throw error;
    job.onReused(0);
    return send(daemon, content, [], own);
  });
  if (!daemon.hasContentStore) return written;
  const { descriptor, layers } = written;
  for (const { digest } of layers) imageMetadata.set(digest, questionTo(daemon), descriptor.digest);
  // Such a store takes the manifest, or the index, for the image's id.
  return { ...written, configDigest: descriptor.digest };
}

const questionTo = ({ id }: Daemon) => `loaded into ${id} with`;

async function send(
  daemon: Daemon,
  content: ImageToWrite,
  there: readonly (LayerBlob | undefined)[],
  { names, compression, onProgress, runtime }: LoadJob,
): Promise<WrittenImage> {
  const layers = content.layers.map((layer, at): LayerContent => ({ ...layer, known: there[at] }));
  const image = { ...content, ...withLayers(content, layers) };
  using scratch = openScratch("export", runtime.environment);
  const write = async () => {
    using files = writeToArchive(scratch.path);
    return daemon.hasContentStore
      ? await writeOciLayout(files, image, { compression, entries: names.map(entryFor) })
      : await writeDockerArchive(files, image, names);
  };
  const written = await write().catch((error: unknown) => {
    throw withScratchHint(error, scratch);
  });
  onProgress("docker takes it in");
  await daemon.load(scratch.path);
  return written;
}

/** The images for several platforms share the layers of all. */
function withLayers(content: ImageToWrite, layers: readonly LayerContent[]): Partial<ImageToWrite> {
  let from = 0;
  const parts = content.parts?.map((part) => {
    const own = layers.slice(from, from + part.layers.length);
    from += own.length;
    return { ...part, layers: own };
  });
  return { layers, ...(parts && { parts }) };
}

/** containerd's annotation has the whole name, that of OCI the tag. */
function entryFor(name: string): Record<string, string> {
  return {
    [containerdNameAnnotation]: normalizedName(name),
    [nameAnnotation]: name.slice(name.lastIndexOf(":") + 1),
  };
}

/** Returns the blobs of the layers that need not be sent. */
async function findLayers(
  daemon: Daemon,
  content: ImageToWrite,
  {
    compression,
    imageMetadata,
    runtime: { signal },
  }: Pick<LoadJob, "compression" | "imageMetadata" | "runtime">,
): Promise<(LayerBlob | undefined)[]> {
  const known = content.layers.map(
    (layer) => knownBlob(layer, content, compression) ?? plain(layer, compression),
  );
  if (known[0] === undefined) return [];
  const images = await daemon.listImages();
  if (daemon.hasContentStore) {
    const present = new Set(images);
    return known.map((blob) => {
      const image = blob && imageMetadata.get(blob.digest, questionTo(daemon));
      return image !== undefined && present.has(image) ? blob : undefined;
    });
  }
  const chains = new Set<string>();
  await forEachConcurrently(images.slice(0, maxImages), 8, signal, async (image) => {
    const layers = await daemon.layersOf(image).catch(() => []);
    layers.forEach((_, at) => {
      chains.add(layers.slice(0, at + 1).join(" "));
    });
  });
  const below: string[] = [];
  return known.map((blob) => {
    below.push(blob?.diffId ?? "unknown");
    return chains.has(below.join(" ")) ? blob : undefined;
  });
}

/** The newest come first. */
const maxImages = 200;

/** A compressed layer of a base is sent unpacked: its digest is known. */
function plain({ stored }: LayerContent, compression: Compression): LayerBlob | undefined {
  if (stored === undefined || compression !== "none") return undefined;
  return { ...stored, digest: stored.diffId };
}
