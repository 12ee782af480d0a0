import { BoughError } from "../../errors.ts";
import { maxUnpackedBytes } from "../../image/archive-limits.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import type { CopiedEntry } from "../../store/copies.ts";
import type { BuildJob } from "../job.ts";
import { createContentUploads } from "../operations/content-uploads.ts";
import { sourceFault } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import type { ArchivePlace } from "../state/staged.ts";
import { createArchiveTree } from "./archive-tree.ts";
import { archiveName, openArchive, openRaw } from "./open-archive.ts";

/** The prefix of the store's keys for the entries of unpacked archives. */
export const unpackedWords = "unpacked";

/**
 * Returns an archive's entries; `undefined` if the content is not an archive. Sends the contents that the service lacks while reading. The entries
 * are remembered under `sha256`, so that the archive is not read again.
 */
export async function readArchive(
  place: ArchivePlace,
  sha256: string,
  build: BuildJob,
): Promise<readonly CopiedEntry[] | undefined> {
  const { copies } = build.services.store;
  const image = `archive ${sha256}`;
  const known = copies.get(image, unpacked);
  if (known !== undefined) return known[0]?.entries;
  const entries = await sendContents(place, sha256, build);
  const source = { path: "/", name: "", type: "directory" } as const;
  copies.set(image, unpacked, entries === undefined ? [] : [{ ...source, entries }]);
  return entries;
}

/** The number is the version of the entries' format: earlier ones lack special files, attributes and times. */
const unpacked = `${unpackedWords}, 5`;

/** Reads the whole archive, even if its entries are remembered. Rejects if the hash of its bytes is no longer `sha256`. */
export async function sendContents(
  place: ArchivePlace,
  sha256: string,
  build: BuildJob,
): Promise<readonly CopiedEntry[] | undefined> {
  await using raw = await openRaw(place, build);
  try {
    const entries = await sendFrom(raw, archiveName(place, build.asked.buildArgs), build);
    if ((await raw.finish()) === sha256) return entries;
  } catch (error) {
    throw "url" in place ? sourceFault(place.url, error, accessForAdd(build)) : error;
  }
  throw new BoughError(
    `${archiveName(place, build.asked.buildArgs)} changed while it was being added: its content is no longer sha256:${sha256}`,
    {
      hint: "Build again.",
    },
  );
}

async function sendFrom(
  raw: AsyncIterable<Uint8Array>,
  name: string,
  build: BuildJob,
): Promise<readonly CopiedEntry[] | undefined> {
  const bytes = await openArchive(raw, name, build.services);
  if (bytes === undefined) return undefined;
  const tree = createArchiveTree(name);
  const contents = createContentUploads(build, Number.POSITIVE_INFINITY);
  let unpacked = 0;
  for await (const entry of readTar(bytes, name)) {
    build.services.signal.throwIfAborted();
    unpacked += entry.size;
    // A few kilobytes are enough for a file of any size that is one hole.
    if (unpacked > maxUnpackedBytes)
      throw new BoughError(`${name} unpacks to more than ${maxUnpackedBytes / 1024 ** 3} GiB`);
    tree.add(entry, entry.type === "file" ? await contents.add(contentOf(entry), entry.size) : undefined);
  }
  await contents.finish();
  return tree.entries();
}

/** Yields a file's bytes as they are read, with zeros for its holes. The chunks belong to the caller: nothing else keeps them. */
export async function* contentOf({ size, pieces }: TarEntry): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const { offset, bytes } of pieces()) {
    yield* zeros(offset - at);
    at = offset + bytes.byteLength;
    yield bytes;
  }
  yield* zeros(size - at);
}

/**
 * Yields what `read` makes of an archive's entries. Stops reading when the caller does: a service might send an endless archive.
 */
export async function* entriesOf<Entry>(
  stream: ReadableStream<Uint8Array>,
  read: (chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Entry>,
): AsyncGenerator<Entry> {
  const reader = stream.getReader();
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  }
  try {
    yield* read(chunks());
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

const zeroBytes = 256 * 1024;

function* zeros(length: number): Generator<Uint8Array> {
  for (let left = length; left > 0; left -= zeroBytes) yield new Uint8Array(Math.min(left, zeroBytes));
}
