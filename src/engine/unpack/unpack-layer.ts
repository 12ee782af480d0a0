import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import {
  type Compression,
  decompress,
  detectLayerCompression,
  peekBeginning,
} from "../../image/compression.ts";
import { type Descriptor, layerMediaType } from "../../image/oci-layout.ts";
import { readLayerTar, type TarEntry } from "../../image/tar-reader.ts";
import { tap } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import { isDiskFull } from "../faults.ts";
import { type FilePart, readPart } from "../import/image-files.ts";
import { NoRoomError, type Room } from "../import-limits.ts";
import { streamSplit, TarSplitWriter } from "../records/tar-split.ts";
import { type BytePath, showPath } from "../system/path.ts";
import type { DeferredParts } from "./complete-layer.ts";
import { LayerWriter } from "./layer-writer.ts";
import { type Account, createAccount, type Totals } from "./totals.ts";

/** A layer's file, and what to do with it. Plain data, since it is sent to a thread. */
export interface LayerJob {
  /** A name for messages. */
  name: string;
  file: FilePart;
  /** The file's digest according to the manifest, if it has one. */
  digest: string | undefined;
  /** The path for a copy of the file, or for its split if it is not compressed; `undefined` if the file belongs to the import. */
  copyTo: string | undefined;
  /** The directory to make and unpack into. */
  directory: string;
  /** The directory of the layer if that is here, and only its blob is missing. */
  existing: string | undefined;
  /** True if another layer is merged into the directory, which may replace files. */
  isMerged: boolean;
  inUserNamespace: boolean;
  room: Room;
}

/** The description of a layer's file after it was read. */
export interface UnpackedLayer extends Descriptor {
  diffId: string;
  deferred: DeferredParts | undefined;
  /** The size of the split, if one was made instead of a copy. */
  splitBytes: number | undefined;
}

/**
 * Reads a layer's file once, and verifies, unpacks and copies it meanwhile. Rejects if its bytes don't match the manifest's
 * digest, or if it is not a layer. The caller compares the content's digest with the configuration's.
 */
export async function unpackLayer(job: LayerJob, totals: Totals): Promise<UnpackedLayer> {
  try {
    return await unpackOnce(job, totals);
  } catch (error) {
    // Damaged bytes may cause any error: that they are damaged is the better reason.
    if (error instanceof BoughError && !(error instanceof NoRoomError)) {
      const stored = createDigest();
      for await (const chunk of readPart(job.file)) stored.add(chunk);
      requireSameDigest(stored.digest(), job.digest, `${job.name} is damaged`);
    }
    throw error;
  }
}

async function unpackOnce(job: LayerJob, totals: Totals): Promise<UnpackedLayer> {
  const stored = createDigest();
  const file = readPart(job.file);
  const account = createAccount(job.room, totals);
  try {
    const { bytes, beginning } = await peekBeginning(file);
    const compression = detectLayerCompression(beginning, job.name);
    using kept = openKept(job, compression, account);
    const original = tap(bytes, (chunk) => {
      stored.add(chunk);
      kept.add(chunk);
    });
    const content = compression === "none" ? stored : createDigest();
    const plain = tap(decompress(original, compression, job.name), (chunk) => {
      if (content !== stored) content.add(chunk);
      account.addContent(chunk.byteLength);
    });
    let written: Written | undefined;
    try {
      written = await readEntries(plain, job, account, kept.split);
      // Bytes after the archive's end count for the digest.
      for await (const _ of plain);
    } finally {
      await plain.return(undefined);
    }
    requireSameDigest(stored.digest(), job.digest, `${job.name} is damaged`);
    let splitBytes = kept.split?.finish();
    if (splitBytes !== undefined && (written?.hasReplaced || !(await isSplitOf(job, stored.digest()))))
      splitBytes = await splitWithoutFiles(job, stored.digest(), account);
    return {
      mediaType: layerMediaType(compression),
      digest: stored.digest(),
      size: stored.size(),
      diffId: content.digest(),
      deferred: job.existing === undefined ? written?.deferred : undefined,
      splitBytes,
    };
  } finally {
    await file.return(undefined);
  }
}

/** The file in which an import keeps a copy of a layer's file, or its split. Disposing it closes the file. */
interface KeptFile extends Disposable {
  add(chunk: Uint8Array): void;
  /** Set if the file is a split. */
  split?: TarSplitWriter;
}

function openKept({ copyTo }: LayerJob, compression: Compression, account: Account): KeptFile {
  if (copyTo === undefined) return { add() {}, [Symbol.dispose]() {} };
  if (compression === "none") {
    const split = new TarSplitWriter(copyTo, account.addWritten);
    return { split, add: (chunk) => split.add(chunk), [Symbol.dispose]: () => split[Symbol.dispose]() };
  }
  const copy = openSync(copyTo, "wx", 0o600);
  return {
    add(chunk) {
      account.addWritten(chunk.byteLength);
      for (let done = 0; done < chunk.byteLength; ) done += writeSync(copy, chunk, done);
    },
    [Symbol.dispose]: () => closeSync(copy),
  };
}

/** Returns true if the split fits the existing layer, which another version of bough may have unpacked differently. */
async function isSplitOf({ copyTo = "", existing }: LayerJob, digest: string): Promise<boolean> {
  if (existing === undefined) return true;
  const made = createDigest();
  try {
    for await (const chunk of streamSplit(copyTo, existing, undefined)) made.add(chunk);
  } catch {
    return false;
  }
  return made.digest() === digest;
}

/** Writes a split anew that leaves nothing out, since not all contents are in the directory. Returns its size. */
async function splitWithoutFiles(
  { copyTo = "", file, name }: LayerJob,
  digest: string,
  account: Account,
): Promise<number> {
  rmSync(copyTo);
  using split = new TarSplitWriter(copyTo, account.addWritten);
  const read = createDigest();
  for await (const chunk of readPart(file)) {
    read.add(chunk);
    split.add(chunk);
  }
  requireSameDigest(read.digest(), digest, `${name} has changed while it was read`);
  return split.finish();
}

interface Written {
  deferred: DeferredParts;
  hasReplaced: boolean;
}

async function readEntries(
  plain: AsyncGenerator<Uint8Array>,
  { name, directory, existing, isMerged, inUserNamespace }: LayerJob,
  account: Account,
  split: TarSplitWriter | undefined,
): Promise<Written | undefined> {
  const leaveOut = (path: BytePath, { isSparse, offset, size }: TarEntry) => {
    if (!isMerged && !isSparse && size > 0) split?.leaveOut(offset, size, path);
  };
  // A split names the files that the archive makes. Those of a layer that exists are found by unpacking it again.
  const unpacks = existing === undefined || split !== undefined;
  if (unpacks) mkdirSync(directory);
  const writer = unpacks ? new LayerWriter(directory, inUserNamespace, leaveOut) : undefined;
  // The iterator has no `return`, so that the reader does not close the stream at the archive's end, which may come before the stream's.
  const stream = { [Symbol.asyncIterator]: () => ({ next: () => plain.next() }) };
  for await (const entry of readLayerTar(stream, name)) {
    account.addEntry(entry, writer?.impliedCount ?? 0);
    try {
      await writer?.write(entry);
    } catch (error) {
      throw describe(error, name, entry);
    }
  }
  return writer && { deferred: writer.finish(), hasReplaced: writer.hasReplaced };
}

/** Adds the entry to an error of the file system, except for a full disk. Errors of the archive name the layer already. */
function describe(error: unknown, layer: string, { name }: TarEntry): unknown {
  if (errorCode(error) !== undefined && !isDiskFull(error))
    return new BoughError(`${layer} cannot be unpacked: ${showPath(name)}: ${messageOf(error)}`);
  return error;
}

export function requireSameDigest(actual: string, expected: string | undefined, message: string): void {
  if (expected === undefined || actual === expected) return;
  throw new BoughError(`${message}: its digest is ${actual}, but ${expected} is expected`);
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
