import { closeSync, linkSync, openSync, renameSync, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { BoughError, messageOf } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { type Descriptor, mediaTypes } from "../../image/oci-layout.ts";
import { createTarMeter, type TarMeter } from "../../image/tar-meter.ts";
import { errorCode } from "../../system-error.ts";
import type { ImportedBlob } from "../records/imported-blobs.ts";
import type { ImageFile } from "./image-files.ts";
import type { LayerFile } from "./image-parts.ts";
import { detectLayerCompression } from "./layer-compression.ts";
import type { Budget } from "./limits.ts";

export interface LayerJob {
  /** The image's name, for messages. */
  image: string;
  /** Where the layer goes, under its digest's digits. */
  blobs: string;
  budget: Budget;
  /** The total of the layers before this one; grows with this one. */
  used: { bytes: number; entries: number; written: number };
  signal: AbortSignal;
}

/** A layer in the layout for umoci, and the file that it came in. */
export interface TakenLayer {
  descriptor: Descriptor;
  original: ImportedBlob;
}

/**
 * Puts one layer into the layout, as it is or, where umoci would not know how to read it, decompressed. Rejects where its bytes
 * are not what the manifest says, or its content not what the configuration says.
 */
export async function addLayerBlob(layer: LayerFile, diffId: string, job: LayerJob): Promise<TakenLayer> {
  const { file } = layer;
  const compression = detectLayerCompression(await firstBytes(file), file.name);
  const isDecompressed = compression === "zstd";
  const isOwn = file.ownPath !== undefined && !isDecompressed;
  const temporary = join(job.blobs, "layer");
  const output = isOwn ? undefined : openOutput(temporary, job);
  const copy = isDecompressed && file.ownPath === undefined ? join(job.blobs, "original") : undefined;
  const copyOutput = copy === undefined ? undefined : openOutput(copy, job);
  const [stored, content] = [createDigest(), createDigest()];
  const add = createAccount(file.name, job);
  try {
    const bytes = watch(file.read(), async (chunk) => {
      stored.add(chunk);
      await (isDecompressed ? copyOutput : output)?.write(chunk);
    });
    for await (const chunk of decompress(bytes, compression, file.name)) {
      job.signal.throwIfAborted();
      content.add(chunk);
      add(chunk);
      if (isDecompressed) await output?.write(chunk);
    }
  } finally {
    output?.close();
    copyOutput?.close();
  }
  requireSame(stored.digest(), layer.digest, `${file.name} is not what it is named`);
  requireSame(
    content.digest(),
    diffId,
    `${job.image} is damaged or forged: the content of ${file.name} is not its configuration's`,
  );
  const kept = isDecompressed ? content : stored;
  const place = join(job.blobs, kept.digest().slice("sha256:".length));
  if (isOwn) linkOnce(file.ownPath ?? "", place);
  else renameSync(temporary, place);
  const suffix = compression === "gzip" ? "+gzip" : "";
  const mediaType = `${mediaTypes.layer}${suffix}`;
  const descriptor = { mediaType, digest: kept.digest(), size: kept.size() };
  if (!isDecompressed) return { descriptor, original: { ...descriptor, diffId, path: place } };
  const zstd = {
    mediaType: `${mediaTypes.layer}+zstd`,
    digest: stored.digest(),
    size: stored.size(),
    diffId,
  };
  return { descriptor, original: { ...zstd, path: file.ownPath ?? keepCopy(copy ?? "", zstd.digest, job) } };
}

function keepCopy(copy: string, digest: string, { blobs }: LayerJob): string {
  const place = join(blobs, digest.slice("sha256:".length));
  renameSync(copy, place);
  return place;
}

async function firstBytes(file: ImageFile): Promise<Uint8Array> {
  for await (const chunk of file.read()) return chunk.subarray(0, 8);
  return new Uint8Array();
}

async function* watch(
  chunks: AsyncIterable<Uint8Array>,
  see: (chunk: Uint8Array) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    await see(chunk);
    yield chunk;
  }
}

function requireSame(actual: string, expected: string | undefined, message: string): void {
  if (expected === undefined || actual === expected) return;
  throw new BoughError(`${message}: its digest is ${actual}, and should be ${expected}`);
}

/** Counts what a layer unpacks to, as it passes by. Throws where that is too much, or where it is no layer. */
function createAccount(name: string, { used, budget }: LayerJob): (chunk: Uint8Array) => void {
  const meter = createTarMeter();
  const before = { ...used };
  let length = 0;
  return (chunk) => {
    length += chunk.byteLength;
    measure(meter, chunk, name);
    // An archive may be longer than the files in it are.
    used.bytes = before.bytes + Math.max(meter.bytes, length);
    used.entries = before.entries + meter.entries;
    budget.check(used);
  };
}

function measure(meter: TarMeter, chunk: Uint8Array, name: string): void {
  try {
    meter.push(chunk);
  } catch (error) {
    throw new BoughError(`${name} is no layer: ${messageOf(error)}`);
  }
}

function createDigest() {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  let digest: string | undefined;
  return {
    add(chunk: Uint8Array) {
      hasher.update(chunk);
      size += chunk.byteLength;
    },
    digest() {
      digest ??= `sha256:${hasher.digest("hex")}`;
      return digest;
    },
    size: () => size,
  };
}

const writeDescriptor = promisify(write);

function openOutput(path: string, { used, budget }: LayerJob) {
  const descriptor = openSync(path, "wx", 0o600);
  return {
    async write(chunk: Uint8Array) {
      used.written += chunk.byteLength;
      budget.check(used);
      for (let done = 0; done < chunk.byteLength; ) {
        done += (await writeDescriptor(descriptor, chunk, done, chunk.byteLength - done)).bytesWritten;
      }
    },
    close: () => closeSync(descriptor),
  };
}

/** An image may have one layer several times. */
function linkOnce(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
}
