import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { type Descriptor, mediaTypes } from "../../image/oci-layout.ts";
import { readLayerTar, type TarEntry } from "../../image/tar-reader.ts";
import { tap } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import { type FilePart, readPart } from "../import/image-files.ts";
import { detectLayerCompression } from "../import/layer-compression.ts";
import { checkRoom, type Room } from "../import/limits.ts";
import { showPath } from "./byte-path.ts";
import { LayerWriter, type OpenEnds } from "./layer-writer.ts";
import type { Totals } from "./totals.ts";

/** A layer's file, and what is to become of it. Plain data: it goes to a thread. */
export interface LayerJob {
  /** A name for messages. */
  name: string;
  file: FilePart;
  /** What the manifest says that the file is, where it says so. */
  digest: string | undefined;
  /** Where a copy of the file goes, if it is not the import's own. */
  copyTo: string | undefined;
  /** A directory that is made, and unpacked into. Default: the layer is only verified. */
  directory: string | undefined;
  inUserNamespace: boolean;
  room: Room;
}

/** What a layer's file was. */
export interface UnpackedLayer extends Descriptor {
  diffId: string;
  openEnds: OpenEnds | undefined;
}

/**
 * Reads a layer's file once: verifies it, and unpacks and copies it meanwhile. Rejects where its bytes are not what the manifest says,
 * or it is not a layer. Whether its content is what the configuration says is for the caller to see.
 */
export async function unpackLayer(job: LayerJob, totals: Totals): Promise<UnpackedLayer> {
  const [stored, content] = [createDigest(), createDigest()];
  const copy = job.copyTo === undefined ? undefined : openSync(job.copyTo, "wx", 0o600);
  const { bytes, beginning } = await peek(readPart(job.file));
  const compression = detectLayerCompression(beginning, job.name);
  const account = createAccount(job.room, totals);
  let openEnds: OpenEnds | undefined;
  try {
    const original = tap(bytes, (chunk) => {
      stored.add(chunk);
      if (copy === undefined) return;
      account.addWritten(chunk.byteLength);
      for (let done = 0; done < chunk.byteLength; ) done += writeSync(copy, chunk, done);
    });
    const plain = tap(decompress(original, compression, job.name), (chunk) => {
      content.add(chunk);
      account.addContent(chunk.byteLength);
    });
    try {
      openEnds = await readEntries(plain, job, account);
      // What comes after the archive's end is part of the digest.
      for await (const _ of plain);
    } finally {
      await plain.return(undefined);
    }
  } finally {
    if (copy !== undefined) closeSync(copy);
  }
  requireSame(stored.digest(), job.digest, `${job.name} is not what it is named`);
  const suffix = compression === "none" ? "" : `+${compression}`;
  return {
    mediaType: `${mediaTypes.layer}${suffix}`,
    digest: stored.digest(),
    size: stored.size(),
    diffId: content.digest(),
    openEnds,
  };
}

async function readEntries(
  plain: AsyncGenerator<Uint8Array>,
  { name, directory, inUserNamespace }: LayerJob,
  account: Account,
): Promise<OpenEnds | undefined> {
  if (directory !== undefined) mkdirSync(directory, { mode: 0o755 });
  const writer = directory === undefined ? undefined : new LayerWriter(directory, inUserNamespace);
  // Without `return`: the reader leaves the stream at the archive's end, which may not be the stream's.
  const stream = { [Symbol.asyncIterator]: () => ({ next: () => plain.next() }) };
  for await (const entry of readLayerTar(stream, name)) {
    account.addEntry(entry, writer?.impliedCount ?? 0);
    try {
      await writer?.write(entry);
    } catch (error) {
      throw describe(error, name, entry);
    }
  }
  return writer?.finish();
}

/** What goes wrong in the file system names the entry; what the archive is to blame for names the layer. */
function describe(error: unknown, layer: string, { name }: TarEntry): unknown {
  if (errorCode(error) !== undefined && !["ENOSPC", "EDQUOT"].includes(errorCode(error) ?? ""))
    return new BoughError(`${layer} cannot be unpacked: ${showPath(name)}: ${messageOf(error)}`);
  return error;
}

async function peek(
  chunks: AsyncGenerator<Uint8Array>,
): Promise<{ bytes: AsyncIterable<Uint8Array>; beginning: Uint8Array }> {
  const { value: first = new Uint8Array() } = await chunks.next();
  const bytes = (async function* () {
    yield first;
    yield* chunks;
  })();
  return { bytes, beginning: first.subarray(0, 8) };
}

export function requireSame(actual: string, expected: string | undefined, message: string): void {
  if (expected === undefined || actual === expected) return;
  throw new BoughError(`${message}: its digest is ${actual}, and should be ${expected}`);
}

type Account = ReturnType<typeof createAccount>;

/** Adds what a layer unpacks to, as it passes by, to what the image's others do. Throws where that is too much. */
function createAccount(room: Room, totals: Totals) {
  let length = 0;
  let unpacked = 0;
  let counted = 0;
  let implied = 0;
  /** An archive may be longer than the files in it are, and they, with their holes, longer than it. */
  const update = () => {
    const bytes = Math.max(length, unpacked);
    totals.add({ bytes: bytes - counted });
    counted = bytes;
    checkRoom(room, totals.read());
  };
  return {
    addContent(bytes: number) {
      length += bytes;
      update();
    },
    addWritten(bytes: number) {
      totals.add({ written: bytes });
      checkRoom(room, totals.read());
    },
    addEntry({ size }: TarEntry, allImplied: number) {
      unpacked += size;
      totals.add({ entries: 1 + Math.max(0, allImplied - implied) });
      implied = Math.max(implied, allImplied);
      update();
    },
  };
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
