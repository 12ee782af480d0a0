import { closeSync, openSync, writeSync } from "node:fs";
import { join, posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { type ImageFile, type ImageFiles, openRegular, quoteName, readPart } from "./image-files.ts";
import { detectLayerCompression } from "./layer-compression.ts";
import { type Budget, maxArchiveEntries } from "./limits.ts";

/** A compressed archive without its compression, in the operation's directory. */
export const archiveFile = "archive.tar";
/** Links that lead to links, one after the other. */
const maxLinks = 10;

type Member = { offset: number; size: number } | { target: string } | { unreadable: string };

/**
 * The files of an image that is a tar archive. Nothing of it is unpacked: its files are read where they are in the archive,
 * and its links lead to others of its own names or nowhere. One that is compressed is decompressed into `directory` before.
 */
export async function openArchiveFiles(
  path: string,
  directory: string,
  budget: Budget,
  signal: AbortSignal,
): Promise<ImageFiles> {
  const plain = await decompressArchive(path, directory, budget, signal);
  const members = new Map<string, Member>();
  const content = readWhole(plain);
  for await (const entry of readTar(content, path)) {
    signal.throwIfAborted();
    if (members.size >= maxArchiveEntries) {
      throw new BoughError(`${path} holds more than ${maxArchiveEntries} files: that is not an image`);
    }
    const name = memberName(entry.name);
    // Whoever asked for a name that an archive has twice would get another file from each program.
    if (members.has(name) && entry.type !== "directory") {
      members.set(name, { unreadable: "is there more than once" });
    } else members.set(name, memberOf(entry, name));
  }
  return { find: (name) => findMember(members, name, { archive: path, plain }) };
}

function memberOf({ type, target, offset, size, isSparse }: TarEntry, name: string): Member {
  if (type === "file") return isSparse ? { unreadable: "is stored with holes" } : { offset, size };
  // A symbolic link counts from its own directory, a hard link from the archive's.
  if (type === "symlink") return { target: posix.join(posix.dirname(name), target) };
  if (type === "hardlink") return { target: memberName(target) };
  return { unreadable: "is not a file" };
}

function findMember(
  members: ReadonlyMap<string, Member>,
  name: string,
  { archive, plain }: { archive: string; plain: string },
): ImageFile | undefined {
  const shown = `${quoteName(name)} in ${archive}`;
  let member = members.get(memberName(name));
  for (let links = 0; member !== undefined && "target" in member; links++) {
    // What leads out of the archive has no member's name.
    member = links < maxLinks ? members.get(member.target) : undefined;
    if (member === undefined) throw new BoughError(`${shown} is a link that leads to no file of it`);
  }
  if (member === undefined) return undefined;
  if ("unreadable" in member) throw new BoughError(`${shown} ${member.unreadable}`);
  const { offset, size } = member;
  return { name: shown, size, place: { path: plain, offset, length: size, name: shown } };
}

/** `./index.json` and `index.json` are one name. */
function memberName(name: string): string {
  return posix.normalize(name).replace(/\/$/, "");
}

/** Where the archive is without its compression; that is `path` itself where there is none. */
async function decompressArchive(
  path: string,
  directory: string,
  budget: Budget,
  signal: AbortSignal,
): Promise<string> {
  const compression = await compressionOf(path);
  if (compression === "none") return path;
  const plain = join(directory, archiveFile);
  const descriptor = openSync(plain, "wx", 0o600);
  let bytes = 0;
  try {
    for await (const chunk of decompress(readWhole(path), compression, path)) {
      signal.throwIfAborted();
      bytes += chunk.byteLength;
      budget.check({ bytes });
      for (let written = 0; written < chunk.byteLength; ) written += writeSync(descriptor, chunk, written);
    }
  } finally {
    closeSync(descriptor);
  }
  return plain;
}

/** Tells the compression by the file's first bytes. */
export async function compressionOf(path: string): Promise<"none" | "gzip" | "zstd"> {
  const { descriptor, size } = openRegular(path);
  closeSync(descriptor);
  const part = { path, offset: 0, length: Math.min(size, 6), name: path };
  const [beginning = new Uint8Array()] = await Array.fromAsync(readPart(part));
  return detectLayerCompression(beginning, path);
}

export function readWhole(path: string): AsyncGenerator<Uint8Array> {
  const { descriptor, size } = openRegular(path);
  closeSync(descriptor);
  return readPart({ path, offset: 0, length: size, name: path });
}
