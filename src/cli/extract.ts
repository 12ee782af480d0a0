import { chmodSync, linkSync, lstatSync, mkdirSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { displayPath } from "../context/display-path.ts";
import { BoughError, messageOf } from "../errors.ts";
import type { TarEntry } from "../image/tar-reader.ts";
import { checkLocalName } from "./local-name.ts";

export interface Extracted {
  files: number;
  bytes: number;
}

/**
 * Writes an archive's entries below `root`, which exists. An image is not trusted: no name and no link of it leads out of
 * `root`, special files and the bits that make a program run as somebody else are left out.
 */
export async function extractArchive(
  entries: AsyncIterable<TarEntry>,
  root: string,
  options: { signal: AbortSignal; platform: NodeJS.Platform; warn: (message: string) => void },
): Promise<Extracted> {
  const extracted: Extracted = { files: 0, bytes: 0 };
  /** Set at the end: nothing can be written to a directory that is read-only. */
  const directories: { path: string; entry: TarEntry }[] = [];
  for await (const entry of entries) {
    options.signal.throwIfAborted();
    const names = partsOf(entry.name);
    if (names.length === 0) continue;
    for (const name of names) checkLocalName(name, options.platform);
    const path = makeParents(root, names);
    try {
      switch (entry.type) {
        case "directory":
          makeDirectory(path, entry.name);
          directories.push({ path, entry });
          break;
        case "file":
          removeOld(path);
          await writeFile(path, entry, options.signal);
          extracted.bytes += entry.size;
          break;
        case "symlink":
          removeOld(path);
          symlinkSync(entry.target, path);
          break;
        case "hardlink":
          removeOld(path);
          linkSync(existingFile(root, entry), path);
          break;
        case "other":
          options.warn(`${displayPath(entry.name)} is a device or a pipe, and is left out`);
          continue;
      }
    } catch (error) {
      throw error instanceof BoughError || options.signal.aborted
        ? error
        : new BoughError(`cannot write ${displayPath(path)}: ${messageOf(error)}`, { cause: error });
    }
    if (entry.type !== "directory") extracted.files += 1;
  }
  for (const { path, entry } of directories.toReversed()) restore(path, entry);
  return extracted;
}

function partsOf(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..") || name.includes("\0")) {
    throw new BoughError(
      `the archive from the service has a name in it that leads elsewhere: ${JSON.stringify(name)}`,
    );
  }
  return parts;
}

/** The entry's place; what is above it are directories, and no links to any. */
function makeParents(root: string, names: readonly string[]): string {
  let path = root;
  for (const name of names.slice(0, -1)) {
    path = join(path, name);
    makeDirectory(path, names.join("/"));
  }
  return join(path, names.at(-1) ?? "");
}

function makeDirectory(path: string, name: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) mkdirSync(path);
  else if (!stats.isDirectory()) {
    throw new BoughError(
      `cannot write ${displayPath(name)}: ${displayPath(path)} is there, and is no directory`,
      {
        hint: "Copy to a place that does not exist yet.",
      },
    );
  }
}

function removeOld(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory())
    throw new BoughError(`${displayPath(path)} is a directory, and would have to become a file`);
  rmSync(path);
}

/** A hard link's target is a file that the archive brought before. */
function existingFile(root: string, { name, target }: TarEntry): string {
  const path = makeParents(root, partsOf(target));
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === true) return path;
  throw new BoughError(
    `the archive from the service links ${displayPath(name)} to ${displayPath(target)}, which is no file of it`,
  );
}

/** `wx`: whatever has come to be there since is not written through. */
async function writeFile(path: string, entry: TarEntry, signal: AbortSignal): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await writePieces(file, entry, signal);
  } finally {
    await file.close();
  }
  restore(path, entry);
}

async function writePieces(file: FileHandle, entry: TarEntry, signal: AbortSignal): Promise<void> {
  for await (const { offset, bytes } of entry.pieces()) {
    signal.throwIfAborted();
    for (let done = 0; done < bytes.byteLength; ) {
      done += (await file.write(bytes, done, bytes.byteLength - done, offset + done)).bytesWritten;
    }
  }
  await file.truncate(entry.size);
}

function restore(path: string, entry: TarEntry): void {
  chmodSync(path, entry.mode & 0o777);
  utimesSync(path, entry.modified, entry.modified);
}
