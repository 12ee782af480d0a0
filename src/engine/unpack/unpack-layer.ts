import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import { type Compression, decompress, detectLayerCompression, peek } from "../../image/compression.ts";
import { type Descriptor, layerMediaType } from "../../image/oci-layout.ts";
import { readLayerTar, type TarEntry } from "../../image/tar-reader.ts";
import { tap } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import { isDiskFull } from "../faults.ts";
import { type FilePart, readPart } from "../import/image-files.ts";
import { checkRoom, NoRoomError, type Room } from "../import-limits.ts";
import { showPath } from "../system/path.ts";
import { type DeferredParts, LayerWriter } from "./layer-writer.ts";

/** A layer's file, and what to do with it. Plain data, since it is sent to a thread. */
export interface LayerJob {
  /** A name for messages. */
  name: string;
  file: FilePart;
  /** The file's digest according to the manifest, if it has one. */
  digest: string | undefined;
  /** The path for a copy of the file; `undefined` if the file belongs to the import. */
  copyTo: string | undefined;
  /** The directory to make and unpack into; `undefined` if the layer is only verified. */
  directory: string | undefined;
  inUserNamespace: boolean;
  room: Room;
}

/** The description of a layer's file after it was read. */
export interface UnpackedLayer extends Descriptor {
  diffId: string;
  deferred: DeferredParts | undefined;
}

/**
 * Reads a layer's file once, and verifies, unpacks and copies it meanwhile. Rejects if its bytes don't match the manifest's
 * digest, or if it is not a layer. The caller compares the content's digest with the configuration's.
 */
export async function unpackLayer(job: LayerJob, totals: Totals): Promise<UnpackedLayer> {
  try {
    return await unpackOnce(job, totals);
  } catch (error) {
    // Damaged bytes may look like anything: that they are damaged is the better reason.
    if (error instanceof BoughError && !(error instanceof NoRoomError)) {
      const stored = createDigest();
      for await (const chunk of readPart(job.file)) stored.add(chunk);
      requireSame(stored.digest(), job.digest, `${job.name} is damaged`);
    }
    throw error;
  }
}

async function unpackOnce(job: LayerJob, totals: Totals): Promise<UnpackedLayer> {
  const [stored, content] = [createDigest(), createDigest()];
  const file = readPart(job.file);
  const copy = job.copyTo === undefined ? undefined : openSync(job.copyTo, "wx", 0o600);
  const account = createAccount(job.room, totals);
  let compression: Compression;
  let deferred: DeferredParts | undefined;
  try {
    const { bytes, beginning } = await peek(file);
    compression = detectLayerCompression(beginning, job.name);
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
      deferred = await readEntries(plain, job, account);
      // Bytes after the archive's end count for the digest.
      for await (const _ of plain);
    } finally {
      await plain.return(undefined);
    }
  } finally {
    await file.return(undefined);
    if (copy !== undefined) closeSync(copy);
  }
  requireSame(stored.digest(), job.digest, `${job.name} is damaged`);
  return {
    mediaType: layerMediaType(compression),
    digest: stored.digest(),
    size: stored.size(),
    diffId: content.digest(),
    deferred,
  };
}

async function readEntries(
  plain: AsyncGenerator<Uint8Array>,
  { name, directory, inUserNamespace }: LayerJob,
  account: Account,
): Promise<DeferredParts | undefined> {
  if (directory !== undefined) mkdirSync(directory);
  const writer = directory === undefined ? undefined : new LayerWriter(directory, inUserNamespace);
  // Without `return`, so that the reader does not close the stream at the archive's end, which may come before the stream's.
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

/** Adds the entry to an error of the file system, except for a full disk. Errors of the archive name the layer already. */
function describe(error: unknown, layer: string, { name }: TarEntry): unknown {
  if (errorCode(error) !== undefined && !isDiskFull(error))
    return new BoughError(`${layer} cannot be unpacked: ${showPath(name)}: ${messageOf(error)}`);
  return error;
}

export function requireSame(actual: string, expected: string | undefined, message: string): void {
  if (expected === undefined || actual === expected) return;
  throw new BoughError(`${message}: its digest is ${actual}, but ${expected} is expected`);
}

type Account = ReturnType<typeof createAccount>;

/** Adds a layer's size, while it is unpacked, to the image's totals. Throws if they exceed the limits or the free space. */
function createAccount(room: Room, totals: Totals) {
  let length = 0;
  let unpacked = 0;
  let counted = 0;
  let implied = 0;
  /** Counts the larger of the two: an archive may be longer than its files, and sparse files longer than the archive. */
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

/** The totals of one import's layers so far, counted by several threads. */
interface Totals {
  /** Throws if the import has ended meanwhile. */
  add(more: { bytes?: number; entries?: number; written?: number }): void;
  read(): { bytes: number; entries: number; written: number };
}

const cells = { bytes: 0, entries: 1, written: 2, isOver: 3 } as const;

/** Makes shared memory for `openTotals`, which works in any thread. */
export function makeTotals(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(cells).length * BigInt64Array.BYTES_PER_ELEMENT);
}

export function openTotals(memory: SharedArrayBuffer): Totals {
  const counts = new BigInt64Array(memory);
  const read = (cell: number) => Number(Atomics.load(counts, cell));
  return {
    add({ bytes = 0, entries = 0, written = 0 }) {
      if (read(cells.isOver) !== 0) throw new Error("the import is over");
      if (bytes !== 0) Atomics.add(counts, cells.bytes, BigInt(bytes));
      if (entries !== 0) Atomics.add(counts, cells.entries, BigInt(entries));
      if (written !== 0) Atomics.add(counts, cells.written, BigInt(written));
    },
    read: () => ({
      bytes: read(cells.bytes),
      entries: read(cells.entries),
      written: read(cells.written),
    }),
  };
}

/** Stops all threads that count: their next `add` throws. */
export function endTotals(memory: SharedArrayBuffer): void {
  Atomics.store(new BigInt64Array(memory), cells.isOver, 1n);
}
