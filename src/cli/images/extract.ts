import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { fileTime } from "../../clock.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { checkLocalNames, createSpellingCheck, otherSpelling } from "../../context/file-system/local-name.ts";
import { BoughError, usageError } from "../../errors.ts";
import type { TarEntry } from "../../image/tar-reader.ts";
import { cannotWrite } from "../process/write-error.ts";

export interface Extracted {
  files: number;
  bytes: number;
}

/**
 * Paths that are known to be directories and not links, so that the parents of an entry are not looked up again: in a deep tree
 * that would take minutes. Directories that extraction creates get the mode and time of their archive entry; existing ones stay
 * unchanged.
 */
interface Written {
  directories: Map<string, Directory>;
  hasOtherSpelling(path: string): boolean;
}

interface Directory {
  isMade: boolean;
  entry?: TarEntry;
}

/**
 * Writes an archive's entries below `root`, which exists. An image is not trusted: no name and no link leads out of `root`,
 * neither one of the archive nor an existing one. Special files and the setuid, setgid and sticky bits are left out. Owners are
 * those of new files, and the umask cuts modes, as with `cp -r`, and with tar for an ordinary user.
 */
export async function extractArchive(
  entries: AsyncIterable<TarEntry>,
  root: string,
  options: { signal: AbortSignal; platform: NodeJS.Platform; warn: (message: string) => void },
): Promise<Extracted> {
  const extracted: Extracted = { files: 0, bytes: 0 };
  const written: Written = { directories: new Map(), hasOtherSpelling: createSpellingCheck() };
  for await (const entry of entries) {
    options.signal.throwIfAborted();
    const names = partsOf(entry.name);
    if (names.length === 0) continue;
    checkLocalNames(names, options.platform, localNameAdvice);
    if (entry.type === "other") {
      options.warn(`${displayPath(entry.name)} is a device or a pipe, which is left out`);
      continue;
    }
    try {
      await extract(entry, root, names, written, options.signal);
    } catch (error) {
      throw options.signal.aborted ? error : cannotWrite([root, ...names].join("/"), error);
    }
    if (entry.type === "directory") continue;
    extracted.files += 1;
    if (entry.type === "file") extracted.bytes += entry.size;
  }
  restoreDirectories(written);
  return extracted;
}

async function extract(
  entry: TarEntry,
  root: string,
  names: readonly string[],
  written: Written,
  signal: AbortSignal,
): Promise<void> {
  const path = makeParents(root, names, written);
  switch (entry.type) {
    case "directory":
      makeDirectory(path, written, entry.mode).entry = entry;
      break;
    case "file":
      removeOld(path, written);
      await writeFile(path, entry, signal);
      break;
    case "symlink":
      removeOld(path, written);
      symlinkSync(entry.target, path);
      break;
    case "hardlink": {
      const target = existingFile(root, entry, written);
      if (target === path) break;
      removeOld(path, written);
      linkSync(target, path);
    }
  }
}

function partsOf(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..") || name.includes("\0")) {
    throw new BoughError(
      `the archive from the service has a path that leads out of it: ${JSON.stringify(name)}`,
    );
  }
  return parts;
}

/** Returns the entry's path, after making its parents: real directories, not links to directories. */
function makeParents(root: string, names: readonly string[], written: Written): string {
  const above = names.slice(0, -1);
  if (!written.directories.has([root, ...above].join("/"))) {
    let path = root;
    for (const name of above) {
      path = `${path}/${name}`;
      makeDirectory(path, written, 0o777);
    }
  }
  return [root, ...names].join("/");
}

/** Makes a directory that its owner can write until it is filled. */
function makeDirectory(path: string, written: Written, mode: number): Directory {
  const known = written.directories.get(path);
  if (known !== undefined) return known;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) mkdirSync(path, { mode: (mode & 0o777) | 0o700 });
  else if (written.hasOtherSpelling(path)) throw otherSpelling(path, localNameAdvice);
  else if (!stats.isDirectory()) throw notDirectory(path, stats);
  const directory = { isMade: stats === undefined };
  written.directories.set(path, directory);
  return directory;
}

function notDirectory(path: string, stats: Stats): BoughError {
  const what = stats.isSymbolicLink() ? "a link, which is not followed" : "not a directory";
  return new BoughError(`${displayPath(path)} already exists and is ${what}`, {
    hint: "Copy to a place that does not exist yet.",
  });
}

function removeOld(path: string, { hasOtherSpelling }: Written): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (hasOtherSpelling(path)) throw otherSpelling(path, localNameAdvice);
  if (stats.isDirectory())
    throw new BoughError(`cannot write the file ${displayPath(path)}: it is a directory`);
  rmSync(path);
}

/** Returns the file below the root that a hard link leads to. */
function existingFile(root: string, { name, target }: TarEntry, written: Written): string {
  const path = makeParents(root, partsOf(target), written);
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === true) return path;
  throw new BoughError(
    `the archive from the service links ${displayPath(name)} to ${displayPath(target)}, which is not a file in it`,
  );
}

/**
 * The flag `wx` refuses to write through a file or link that has appeared since. The umask cuts the mode. A file that is not
 * complete does not stay: nothing would tell it from a complete one.
 */
async function writeFile(path: string, entry: TarEntry, signal: AbortSignal): Promise<void> {
  await using file = await open(path, "wx", entry.mode & 0o777);
  try {
    await writePieces(file, entry, signal);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
  if (isDate(entry.modified)) await file.utimes(fileTime(entry.modified), fileTime(entry.modified));
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

/**
 * Restores modes and times at the end, the deepest directories first: files can't be created in a directory that is read-only or
 * can't be entered.
 */
function restoreDirectories(written: Written): void {
  const deepestFirst = [...written.directories].sort(([one], [other]) => other.length - one.length);
  for (const [path, { isMade, entry }] of deepestFirst) {
    if (!isMade || entry === undefined) continue;
    try {
      const stats = lstatSync(path);
      if (!stats.isDirectory()) continue;
      chmodSync(path, stats.mode & entry.mode & 0o777);
      if (isDate(entry.modified)) utimesSync(path, fileTime(entry.modified), fileTime(entry.modified));
    } catch (error) {
      throw cannotWrite(path, error);
    }
  }
}

/** True if the seconds since the epoch are in the range of JavaScript's dates: an archive may have any value. */
function isDate(seconds: number): boolean {
  return Math.abs(seconds) <= 8.64e12;
}

/** What to do about a name of an image that this system has no file of. */
export const localNameAdvice =
  "`bough cp PATH -` writes an archive instead: unpack it on a system that allows such names.";

/** Throws if a directory of an image is to be copied to what is a file here. */
export function refuseFile(local: string, stats: Stats | undefined, path: string): void {
  if (stats?.isDirectory() !== false) return;
  throw usageError(`${local} is a file, but ${path} is a directory`);
}
