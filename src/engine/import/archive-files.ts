import { closeSync, openSync, writeSync } from "node:fs";
import { join, posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { type Compression, decompress, detectLayerCompression } from "../../image/compression.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import type { ByteSource } from "../../image/tar-source.ts";
import { type ImportBudget, maxArchiveEntries } from "../import-limits.ts";
import {
  type FilePart,
  type ImportFile,
  type ImportFiles,
  openPart,
  openRegular,
  quoteName,
  readPart,
} from "./image-files.ts";

/** The name of the decompressed archive in the operation's directory. */
export const archiveFile = "archive.tar";
/** The maximum length of a chain of links. */
const maxLinks = 10;

type Member = { offset: number; size: number } | { target: string } | { unreadable: string };

/**
 * Opens the files of an image that is a tar archive. Nothing is unpacked: files are read from their places in the archive. Links
 * can lead only to other names of the archive. A compressed archive is first decompressed into `directory`.
 */
export async function openArchiveFiles(
  path: string,
  directory: string,
  budget: ImportBudget,
  signal: AbortSignal,
): Promise<ImportFiles> {
  const plain = await decompressArchive(path, directory, budget, signal);
  const members = new Map<string, Member>();
  for await (const entry of readTar(openWhole(plain), path)) {
    signal.throwIfAborted();
    if (members.size >= maxArchiveEntries) {
      throw new BoughError(
        `${path} has more than ${maxArchiveEntries} files, which is too many for an image`,
      );
    }
    const name = memberName(entry.name);
    // If an archive has a name twice, programs disagree on which file it means.
    if (members.has(name) && entry.type !== "directory") {
      members.set(name, { unreadable: "occurs more than once" });
    } else members.set(name, memberOf(entry, name));
  }
  return { find: (name) => findMember(members, name, { archive: path, plain }) };
}

function memberOf({ type, target, offset, size, isSparse }: TarEntry, name: string): Member {
  if (type === "file")
    return isSparse ? { unreadable: "is a sparse file, which is not supported here" } : { offset, size };
  // A symbolic link is relative to its own directory, a hard link to the archive's root.
  if (type === "symlink") return { target: posix.join(posix.dirname(name), target) };
  if (type === "hardlink") return { target: memberName(target) };
  return { unreadable: "is not a regular file" };
}

function findMember(
  members: ReadonlyMap<string, Member>,
  name: string,
  { archive, plain }: { archive: string; plain: string },
): ImportFile | undefined {
  const shown = `${quoteName(name)} in ${archive}`;
  let member = members.get(memberName(name));
  for (let links = 0; member !== undefined && "target" in member; links++) {
    // A target outside the archive is not a member's name.
    member = links < maxLinks ? members.get(member.target) : undefined;
    if (member === undefined) throw new BoughError(`${shown} is a link whose target is not in the archive`);
  }
  if (member === undefined) return undefined;
  if ("unreadable" in member) throw new BoughError(`${shown} ${member.unreadable}`);
  const { offset, size } = member;
  return { name: shown, size, place: { path: plain, offset, length: size, name: shown } };
}

/** Normalizes a member's name: `./index.json` and `index.json` are the same. */
function memberName(name: string): string {
  return posix.normalize(name).replace(/\/$/, "");
}

/** Returns the path of the decompressed archive: `path` itself if it is not compressed. */
async function decompressArchive(
  path: string,
  directory: string,
  budget: ImportBudget,
  signal: AbortSignal,
): Promise<string> {
  const compression = await compressionOf(path);
  if (compression === "none") return path;
  const plain = join(directory, archiveFile);
  const descriptor = openSync(plain, "wx", 0o600);
  let bytes = 0;
  try {
    for await (const chunk of decompress(readWholeFile(path), compression, path)) {
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

/** Detects the compression by the file's first bytes. */
export async function compressionOf(path: string): Promise<Compression> {
  const { descriptor, size } = openRegular(path);
  closeSync(descriptor);
  const part = { path, offset: 0, length: Math.min(size, 6), name: path };
  const [beginning = new Uint8Array()] = await Array.fromAsync(readPart(part));
  return detectLayerCompression(beginning, path);
}

/** Opens a whole file. Contents of its members need not be read. */
export function openWhole(path: string): ByteSource {
  return openPart(wholeOf(path));
}

export function readWholeFile(path: string): AsyncGenerator<Uint8Array> {
  return readPart(wholeOf(path));
}

function wholeOf(path: string): FilePart {
  const { descriptor, size } = openRegular(path);
  closeSync(descriptor);
  return { path, offset: 0, length: size, name: path };
}
