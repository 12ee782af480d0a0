/**
 * The format of an entry that locates a cache's blobs: a line with lengths, a compressed directory with the manifest, the blobs that a
 * build reads with the manifest, and further small blobs. The other blobs are in packs, entries that consist of blobs.
 * The text of one embedded blob is the dictionary for the directory's compression: a cache's index names the same digests.
 */
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { decompress } from "../../image/compression.ts";
import { isDigest } from "../../image/digest.ts";
import { asInteger, asRecord, asText, parseRecord } from "../../service/http/json.ts";
import { inOneChunk, readAtMost } from "../../streams.ts";
import { type StoredManifest, WrongBlobError } from "../blob-store.ts";

/** The bytes of a pack that are a blob. */
export interface BlobLocation {
  pack: string;
  offset: number;
  length: number;
}

export interface IndexDirectory {
  manifest: Pick<StoredManifest, "mediaType" | "bytes">;
  /** Sizes of packs by their keys. */
  packs: ReadonlyMap<string, number>;
  /** Locations of blobs by their digests. */
  locations: ReadonlyMap<string, BlobLocation>;
  /** Blobs in the entry itself. Offsets are from its beginning. */
  embedded: ReadonlyMap<string, { offset: number; length: number }>;
}

const compressZstd = promisify(zstdCompress);
const decompressZstd = promisify(zstdDecompress);

const format = "bough-cache-directory";
/** The number of bytes to read first: more than the first line has, which is shorter than 100. */
export const headBytes = 8192;
const maxDirectoryBytes = 64 * 1024 * 1024;

interface EncodedEntry {
  bytes: Buffer;
  /** The locations of the embedded blobs in `bytes`. */
  embedded: IndexDirectory["embedded"];
}

/** @param eager how many of the first embedded blobs each build reads; the last of these is the dictionary */
export async function encodeIndexEntry(
  {
    manifest,
    packs,
    locations,
    embedded,
  }: Omit<IndexDirectory, "embedded"> & {
    embedded: ReadonlyMap<string, Uint8Array>;
  },
  eager: number,
): Promise<EncodedEntry> {
  const keys = [...packs.keys()];
  const numbers = new Map(keys.map((key, at) => [key, at]));
  let end = 0;
  const places = Array.from(embedded, ([digest, { byteLength: length }]) => {
    const place = { digest, offset: end, length };
    end += length;
    return place;
  });
  const text = JSON.stringify({
    manifest: { type: manifest.mediaType, text: Buffer.from(manifest.bytes).toString() },
    packs: [...packs],
    blobs: Array.from(locations, ([digest, place]) => [
      ...[digest, numbers.get(place.pack), place.offset, place.length],
    ]),
    embedded: places.map(({ digest, offset, length }) => [digest, offset, length]),
  });
  const last = places[eager - 1];
  const dictionary =
    last && (await unpack(embedded.get(last.digest) ?? new Uint8Array(0)).catch(() => undefined));
  const directory = await compressZstd(text, dictionary === undefined ? {} : { dictionary });
  const eagerEnd = directory.byteLength + (last === undefined ? 0 : last.offset + last.length);
  const known = dictionary === undefined ? "" : ` ${last?.offset} ${last?.length}`;
  const line = Buffer.from(`${format} 2 ${directory.byteLength} ${eagerEnd}${known}\n`);
  const start = line.byteLength + directory.byteLength;
  return {
    bytes: Buffer.concat([line, directory, ...embedded.values()]),
    embedded: new Map(
      places.map(({ digest, offset, length }) => [digest, { offset: start + offset, length }]),
    ),
  };
}

/** The first line of an entry, as offsets from the entry's beginning. */
export interface IndexHead {
  start: number;
  directoryEnd: number;
  eagerEnd: number;
  /** The blob whose text is the directory's dictionary. */
  dictionary: { start: number; end: number } | undefined;
}

/** Parses the first line, also of version 1, whose directory has no dictionary. */
export function parseIndexHead(bytes: Uint8Array): IndexHead {
  const line = Buffer.from(bytes.subarray(0, 100)).toString("latin1");
  const [whole, directory, eager, offset, length] =
    /^bough-cache-directory [12] (\d{1,9}) (\d{1,9})(?: (\d{1,9}) (\d{1,9}))?\n/.exec(line) ?? [];
  if (whole === undefined || Math.max(Number(directory), Number(length ?? 0)) > maxDirectoryBytes)
    throw damaged();
  const start = whole.length;
  const directoryEnd = start + Number(directory);
  const from = directoryEnd + Number(offset);
  return {
    ...{ start, directoryEnd, eagerEnd: start + Number(eager) },
    dictionary: length === undefined ? undefined : { start: from, end: from + Number(length) },
  };
}

/** @param bytes the entry, at least up to `eagerEnd` */
export async function decodeDirectory(
  bytes: Uint8Array,
  { start, directoryEnd, dictionary }: IndexHead,
): Promise<IndexDirectory> {
  const known = dictionary && (await unpack(bytes.subarray(dictionary.start, dictionary.end)));
  const record = parseRecord(await unpackWith(bytes.subarray(start, directoryEnd), known));
  const manifest = asRecord(record?.manifest);
  const [mediaType, text] = [asText(manifest?.type), asText(manifest?.text)];
  if (mediaType === undefined || text === undefined) throw damaged();
  const packs = rowsOf(record?.packs).map(([key, size]) => ({ key: wanted(asText(key)), size: count(size) }));
  const locations = rowsOf(record?.blobs).map(([digest, at, offset, length]) => {
    const place = { pack: wanted(packs[count(at)]).key, offset: count(offset), length: count(length) };
    return [wantedDigest(digest), place] as const;
  });
  const embedded = rowsOf(record?.embedded).map(([digest, offset, length]) => {
    const place = { offset: directoryEnd + count(offset), length: count(length) };
    return [wantedDigest(digest), place] as const;
  });
  return {
    manifest: { mediaType, bytes: Buffer.from(text) },
    packs: new Map(packs.map(({ key, size }) => [key, size])),
    locations: new Map(locations),
    embedded: new Map(embedded),
  };
}

async function unpack(compressed: Uint8Array): Promise<Uint8Array> {
  // It is decompressed in pieces, so that a small entry can't fill the memory.
  const chunks = decompress(inOneChunk(compressed), "zstd", "the entry");
  const unpacked = await readAtMost(maxDirectoryBytes, chunks).catch(() => undefined);
  if (unpacked?.isWhole !== true) throw damaged();
  return unpacked.bytes;
}

async function unpackWith(compressed: Uint8Array, dictionary: Uint8Array | undefined): Promise<Uint8Array> {
  try {
    return await decompressZstd(compressed, {
      maxOutputLength: maxDirectoryBytes,
      ...(dictionary && { dictionary }),
    });
  } catch {
    throw damaged();
  }
}

function rowsOf(value: unknown): unknown[][] {
  if (!Array.isArray(value) || !value.every(Array.isArray)) throw damaged();
  return value;
}

function wanted<T>(value: T | undefined): T {
  if (value === undefined) throw damaged();
  return value;
}

function wantedDigest(value: unknown): string {
  return wanted(isDigest(value) ? value : undefined);
}

function count(value: unknown): number {
  const number = asInteger(value);
  return wanted(number !== undefined && number >= 0 ? number : undefined);
}

export function damaged(): WrongBlobError {
  return new WrongBlobError("the entry is damaged");
}
