/** The content of an entry of GitHub's cache that says where blobs are: what was written is read, also by the version before. */
import { expect, test } from "bun:test";
import { digestOf } from "../../src/image/digest.ts";
import { decodeDirectory, encodeIndexEntry, parseIndexHead } from "../../src/registry/github/index-entry.ts";

const digests = Array.from({ length: 40 }, (_, at) => digestOf(Buffer.from(`blob ${at}`)));
const index = Bun.zstdCompressSync(digests.map((digest) => digest.replace("sha256:", "")).join("\n"));
const files = [Buffer.from("{}"), index, Buffer.from("what few builds read")];
const entry = {
  manifest: { mediaType: "application/json", bytes: Buffer.from(JSON.stringify(digests)) },
  packs: new Map([["pack", 4000]]),
  locations: new Map(
    digests.map((digest, at) => [digest, { pack: "pack", offset: 100 * at, length: 100 }] as const),
  ),
  embedded: new Map(files.map((bytes) => [digestOf(bytes), bytes] as const)),
};

/** The form that bough wrote before directories had a dictionary. */
function encodeFirstVersion(): Buffer {
  let offset = 0;
  const embedded = files.map((bytes) => {
    const row = [digestOf(bytes), offset, bytes.byteLength];
    offset += bytes.byteLength;
    return row;
  });
  const blobs = digests.map((digest, at) => [digest, 0, 100 * at, 100]);
  const manifest = { type: entry.manifest.mediaType, text: entry.manifest.bytes.toString() };
  const directory = Bun.zstdCompressSync(
    JSON.stringify({ manifest, packs: [["pack", 4000]], blobs, embedded }),
  );
  const eager = directory.byteLength + 2 + index.byteLength;
  const line = Buffer.from(`bough-cache-directory 1 ${directory.byteLength} ${eager}\n`);
  return Buffer.concat([line, directory, ...files]);
}

test.each([
  ["the first version", async () => encodeFirstVersion()],
  ["one with a dictionary", async () => (await encodeIndexEntry(entry, 2)).bytes],
  ["one that each build reads nothing with", async () => (await encodeIndexEntry(entry, 0)).bytes],
  // Its second file is no archive.
  ["one without a dictionary", async () => (await encodeIndexEntry(entry, 1)).bytes],
])("%s has what was written", async (_, encode) => {
  const bytes = await encode();
  const head = parseIndexHead(bytes);
  const decoded = await decodeDirectory(bytes.subarray(0, Math.max(head.directoryEnd, head.eagerEnd)), head);
  expect(Buffer.from(decoded.manifest.bytes)).toEqual(entry.manifest.bytes);
  expect(decoded.packs).toEqual(entry.packs);
  expect(decoded.locations).toEqual(entry.locations);
  for (const [digest, { offset, length }] of decoded.embedded)
    expect(digestOf(bytes.subarray(offset, offset + length))).toBe(digest);
  expect([...decoded.embedded.keys()]).toEqual([...entry.embedded.keys()]);
});

test("the digests that a file names cost a few bytes in the directory", async () => {
  const { bytes } = await encodeIndexEntry(entry, 2);
  const { start, directoryEnd } = parseIndexHead(bytes);
  expect(directoryEnd - start).toBeLessThan(32 * digests.length);
});

test.each([
  ["is longer than the limit", "bough-cache-directory 2 10 10 0 999999999\n"],
  ["is no archive", "bough-cache-directory 2 0 10 0 10\n0123456789"],
])("a dictionary that %s is damage", async (_, text) => {
  const read = async () => decodeDirectory(Buffer.from(text), parseIndexHead(Buffer.from(text)));
  expect(read()).rejects.toThrow("the entry is damaged");
});
