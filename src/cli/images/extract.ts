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
type Directories = Map<string, Directory>;

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
  const directories: Directories = new Map();
  for await (const entry of entries) {
    options.signal.throwIfAborted();
    const names = partsOf(entry.name);
    if (names.length === 0) continue;
    for (const name of names) checkLocalName(name, options.platform);
    if (entry.type === "other") {
      options.warn(`${displayPath(entry.name)} is a device or a pipe, which is left out`);
      continue;
    }
    try {
      await extract(entry, root, names, directories, options.signal);
    } catch (error) {
      throw options.signal.aborted ? error : cannotWrite([root, ...names].join("/"), error);
    }
    if (entry.type === "directory") continue;
    extracted.files += 1;
    if (entry.type === "file") extracted.bytes += entry.size;
  }
  restoreDirectories(directories);
  return extracted;
}

async function extract(
  entry: TarEntry,
  root: string,
  names: readonly string[],
  directories: Directories,
  signal: AbortSignal,
): Promise<void> {
  const path = makeParents(root, names, directories);
  switch (entry.type) {
    case "directory":
      makeDirectory(path, directories, entry.mode).entry = entry;
      break;
    case "file":
      removeOld(path);
      await writeFile(path, entry, signal);
      break;
    case "symlink":
      removeOld(path);
      symlinkSync(entry.target, path);
      break;
    case "hardlink": {
      const target = existingFile(root, entry, directories);
      if (target === path) break;
      removeOld(path);
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
function makeParents(root: string, names: readonly string[], directories: Directories): string {
  const above = names.slice(0, -1);
  if (!directories.has([root, ...above].join("/"))) {
    let path = root;
    for (const name of above) {
      path = `${path}/${name}`;
      makeDirectory(path, directories, 0o777);
    }
  }
  return [root, ...names].join("/");
}

/** Makes a directory that its owner can write until it is filled. */
function makeDirectory(path: string, directories: Directories, mode: number): Directory {
  const known = directories.get(path);
  if (known !== undefined) return known;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) mkdirSync(path, { mode: (mode & 0o777) | 0o700 });
  else if (!stats.isDirectory()) throw notDirectory(path, stats);
  const directory = { isMade: stats === undefined };
  directories.set(path, directory);
  return directory;
}

function notDirectory(path: string, stats: Stats): BoughError {
  const what = stats.isSymbolicLink() ? "a link, which is not followed" : "not a directory";
  return new BoughError(`${displayPath(path)} already exists and is ${what}`, {
    hint: "Copy to a place that does not exist yet.",
  });
}

function removeOld(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory())
    throw new BoughError(`cannot write the file ${displayPath(path)}: it is a directory`);
  rmSync(path);
}

/** Returns the file below the root that a hard link leads to. */
function existingFile(root: string, { name, target }: TarEntry, directories: Directories): string {
  const path = makeParents(root, partsOf(target), directories);
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
function restoreDirectories(directories: Directories): void {
  const deepestFirst = [...directories].sort(([one], [other]) => other.length - one.length);
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

/** Characters that are special in Windows paths and patterns, names of its devices, and endings that it drops. */
const notOnWindows = /[<>:"\\|?*\u0000-\u001f]|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)|[. ]$/i;

/** Rejects a file name from an image that means something else on this system: a path, a device, another file. */
export function checkLocalName(name: string, platform: NodeJS.Platform): void {
  if (platform !== "win32" || !notOnWindows.test(name)) return;
  throw new BoughError(`${displayPath(name)} can't be the name of a file on Windows`, {
    hint: "`bough cp PATH -` writes an archive instead: unpack it on a system that allows such names.",
  });
}

/** Throws if a directory of an image is to be copied to what is a file here. */
export function refuseFile(local: string, stats: Stats | undefined, path: string): void {
  if (stats?.isDirectory() !== false) return;
  throw usageError(`${local} is a file, but ${path} is a directory`);
}
