/**
 * The content of an entry that says where a cache's blobs are: a line with lengths, a compressed directory with the manifest, and
 * the blobs that a build reads with it. The others are in packs, entries of blobs one after the other.
 */
import { decompress } from "../../image/compression.ts";
import { isDigest } from "../../image/digest.ts";
import { asInteger, asRecord, asText, parseRecord } from "../../service/http/json.ts";
import { readAtMost } from "../../streams.ts";
import { type StoredManifest, WrongBlobError } from "../blob-store.ts";

/** Where a blob is: bytes of an entry. */
export interface BlobLocation {
  pack: string;
  offset: number;
  length: number;
}

export interface IndexDirectory {
  manifest: Pick<StoredManifest, "mediaType" | "bytes">;
  /** Sizes of packs by their keys. */
  packs: ReadonlyMap<string, number>;
  /** By their digests. */
  locations: ReadonlyMap<string, BlobLocation>;
  /** Blobs in the entry itself. Offsets are from the end of the directory, or from the entry's beginning once it was read. */
  embedded: ReadonlyMap<string, { offset: number; length: number }>;
}

const format = "bough-cache-directory 1";
/** A line of this format is shorter. */
export const headBytes = 8192;
const maxDirectoryBytes = 64 * 1024 * 1024;

/** @param eager the number of embedded blobs, of the first, that each build reads */
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
): Promise<Buffer> {
  const keys = [...packs.keys()];
  const places = new Map(keys.map((key, at) => [key, at]));
  let offset = 0;
  const ends: number[] = [];
  const rows = Array.from(embedded, ([digest, { byteLength }]) => {
    const row = [digest, offset, byteLength];
    offset += byteLength;
    ends.push(offset);
    return row;
  });
  const directory = await Bun.zstdCompress(
    JSON.stringify({
      manifest: { type: manifest.mediaType, text: Buffer.from(manifest.bytes).toString() },
      packs: [...packs],
      blobs: Array.from(locations, ([digest, place]) => [
        ...[digest, places.get(place.pack), place.offset, place.length],
      ]),
      embedded: rows,
    }),
  );
  const eagerBytes = directory.byteLength + (ends[eager - 1] ?? 0);
  const line = Buffer.from(`${format} ${directory.byteLength} ${eagerBytes}\n`);
  return Buffer.concat([line, directory, ...embedded.values()]);
}

/** The lengths in the first line. `directoryEnd` and `eagerEnd` count from the entry's beginning. */
export interface IndexHead {
  start: number;
  directoryEnd: number;
  eagerEnd: number;
}

export function parseIndexHead(bytes: Uint8Array): IndexHead {
  const line = Buffer.from(bytes.subarray(0, 100)).toString("latin1");
  const [whole, directory, eager] = /^bough-cache-directory 1 (\d{1,9}) (\d{1,9})\n/.exec(line) ?? [];
  if (whole === undefined || Number(directory) > maxDirectoryBytes) throw damaged();
  const start = whole.length;
  return { start, directoryEnd: start + Number(directory), eagerEnd: start + Number(eager) };
}

export async function decodeDirectory(compressed: Uint8Array, { directoryEnd }: IndexHead) {
  const record = parseRecord(await unpack(compressed));
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
  // In pieces, so that a small file can't fill the memory.
  const chunks = decompress(once(compressed), "zstd", "the entry");
  const unpacked = await readAtMost(maxDirectoryBytes, chunks).catch(() => undefined);
  if (unpacked?.isWhole !== true) throw damaged();
  return unpacked.bytes;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
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
