import { chmodSync, linkSync, lstatSync, mkdirSync, rmSync, type Stats, symlinkSync } from "node:fs";
import { displayPath } from "../../context/file-system/display-path.ts";
import { checkLocalNames, createSpellingCheck, nameCollision } from "../../context/file-system/local-name.ts";
import { BoughError, usageError } from "../../errors.ts";
import type { TreeEntry } from "../../image/tree-entry.ts";
import { reasonOf } from "../../system-error.ts";
import { cannotWrite } from "../process/write-error.ts";
import { RunningCopies } from "./running-copies.ts";
import {
  copyHostFile,
  type EntryOptions,
  makeSpecial,
  setAttributes,
  setTime,
  writeFile,
} from "./write-entry.ts";

export interface ExtractResult {
  files: number;
  bytes: number;
}

/**
 * The state of an extraction. `directories` has paths that are known to be directories and not links: looking up all parents of each
 * entry would take minutes in a deep tree. Created directories get the mode and time of their archive entry, existing ones keep theirs.
 */
interface Extraction extends ExtractOptions {
  root: string;
  copies: RunningCopies;
  directories: Map<string, Directory>;
  hasOtherSpelling(path: string): boolean;
}

interface Directory {
  isCreated: boolean;
  entry?: TreeEntry;
}

export interface ExtractOptions extends EntryOptions {
  /** The time of all entries, in seconds since the epoch; `undefined`: their own. */
  time?: number | undefined;
  /** The owners, by path, of files that several images write into one directory: no image may replace a file of another. */
  shared?: { owner: string; owners: Map<string, string> } | undefined;
  warn: (message: string) => void;
}

/**
 * Writes the entries of an archive below `root`, which exists. An image is not trusted: neither a name nor a link, of the archive or
 * existing, leads out of `root`. Files belong to the user, as new files do.
 */
export async function extractArchive(
  entries: AsyncIterable<TreeEntry>,
  root: string,
  options: ExtractOptions,
): Promise<ExtractResult> {
  const extracted: ExtractResult = { files: 0, bytes: 0 };
  const extraction: Extraction = {
    ...options,
    ...{ root, directories: new Map(), hasOtherSpelling: createSpellingCheck() },
    copies: new RunningCopies(),
  };
  await using copies = extraction.copies;
  for await (const given of entries) {
    options.signal.throwIfAborted();
    const entry = options.time === undefined ? given : { ...given, modified: options.time };
    const names = splitEntryName(entry.name);
    if (names.length === 0) continue;
    checkLocalNames(names, options.platform, localNameAdvice);
    if (entry.type !== "directory" && options.shared !== undefined)
      requireUniquePath(names.join("/"), options.shared);
    try {
      if (!(await extract(entry, names, extraction))) {
        options.warn(`${displayPath(entry.name)} is a device or a pipe, which is left out`);
        continue;
      }
    } catch (error) {
      throw options.signal.aborted ? error : cannotWrite([root, ...names].join("/"), error);
    }
    if (entry.type === "directory") continue;
    extracted.files += 1;
    if (entry.type === "file") extracted.bytes += entry.size;
  }
  await copies.drain();
  restoreDirectories(extraction);
  return extracted;
}

/** Throws, with BuildKit's message, if another image has a file with this path. */
function requireUniquePath(path: string, { owner, owners }: NonNullable<ExtractOptions["shared"]>): void {
  const other = owners.get(path);
  owners.set(path, owner);
  if (other === undefined) return;
  throw new BoughError(
    `cannot overwrite ${displayPath(path)} from ${other} with ${owner} when split option is disabled`,
    { hint: "Leave platform-split=false out: each platform gets a directory." },
  );
}

/** Writes an entry. Returns false for a special file that can't be created. */
async function extract(entry: TreeEntry, names: readonly string[], extraction: Extraction): Promise<boolean> {
  const { style } = extraction;
  if (entry.type === "other" && style === "plain") return false;
  const path = makeParents(names, extraction);
  switch (entry.type) {
    case "directory":
      makeDirectory(path, extraction, entry.mode).entry = entry;
      break;
    case "file":
      removeOld(path, extraction);
      if (entry.hostPath === undefined) await writeFile(path, entry, extraction);
      else await extraction.copies.add(path, copyHostFile(path, entry.hostPath, entry, extraction));
      break;
    case "symlink":
      removeOld(path, extraction);
      makeLink(entry, path, extraction);
      break;
    case "hardlink": {
      await extraction.copies.drain();
      const target = existingFile(entry, extraction);
      if (target === path) break;
      removeOld(path, extraction);
      linkSync(target, path);
      break;
    }
    case "other":
      removeOld(path, extraction);
      return makeSpecial(path, entry, extraction);
  }
  return true;
}

function makeLink(entry: TreeEntry, path: string, { platform, style }: ExtractOptions): void {
  try {
    symlinkSync(entry.target, path);
    if (style === "exact") setTime(path, entry);
  } catch (cause) {
    if (platform !== "win32") throw cause;
    throw new BoughError(`cannot make the link ${displayPath(path)}: ${reasonOf(cause)}`, {
      hint: `Windows lets administrators make links, and others in its developer mode only. ${archiveAdvice}`,
      cause,
    });
  }
}

function splitEntryName(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..") || name.includes("\0")) {
    throw new BoughError(
      `the archive from the service has a path that leads out of it: ${JSON.stringify(name)}`,
    );
  }
  return parts;
}

/** Returns the path of an entry, after creating its parents as real directories, not links to directories. */
function makeParents(names: readonly string[], extraction: Extraction): string {
  const { root } = extraction;
  const above = names.slice(0, -1);
  if (!extraction.directories.has([root, ...above].join("/"))) {
    let path = root;
    for (const name of above) {
      path = `${path}/${name}`;
      makeDirectory(path, extraction, 0o777);
    }
  }
  return [root, ...names].join("/");
}

/** Creates a directory, which its owner can write to until extraction is complete. */
function makeDirectory(path: string, extraction: Extraction, mode: number): Directory {
  const known = extraction.directories.get(path);
  if (known !== undefined) return known;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && extraction.hasOtherSpelling(path)) throw nameCollision(path, localNameAdvice);
  const isInTheWay = stats?.isDirectory() === false;
  if (isInTheWay && extraction.style === "plain") throw notDirectory(path, stats);
  if (isInTheWay) rmSync(path);
  const isCreated = stats === undefined || isInTheWay;
  if (isCreated) mkdirSync(path, { mode: (mode & 0o777) | 0o700 });
  const directory = { isCreated };
  extraction.directories.set(path, directory);
  return directory;
}

function notDirectory(path: string, stats: Stats): BoughError {
  const what = stats.isSymbolicLink() ? "a link, which is not followed" : "not a directory";
  return new BoughError(`${displayPath(path)} already exists and is ${what}`, {
    hint: "Copy to a path that does not exist yet.",
  });
}

function removeOld(path: string, { hasOtherSpelling, style }: Extraction): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (hasOtherSpelling(path)) throw nameCollision(path, localNameAdvice);
  if (stats.isDirectory() && style === "plain")
    throw new BoughError(`cannot write the file ${displayPath(path)}: it is a directory`);
  rmSync(path, { recursive: stats.isDirectory() });
}

/** Returns the target of a hard link, a file below the root. */
function existingFile({ name, target }: TreeEntry, extraction: Extraction): string {
  const path = makeParents(splitEntryName(target), extraction);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  // Systems other than Linux follow a link to a link, which may lead anywhere.
  const mayBeAny = extraction.style === "exact" && extraction.platform === "linux";
  if (stats?.isFile() === true || (mayBeAny && stats?.isDirectory() === false)) return path;
  throw new BoughError(
    `the archive from the service links ${displayPath(name)} to ${displayPath(target)}, which is not a file in it`,
  );
}

/**
 * Restores modes and times of directories at the end, the deepest first, since files can't be created in a directory that is read-only
 * or can't be entered.
 */
function restoreDirectories(extraction: Extraction): void {
  const deepestFirst = [...extraction.directories].sort(([one], [other]) => other.length - one.length);
  for (const [path, { isCreated: isMade, entry }] of deepestFirst) {
    const isDescribed = isMade || extraction.style === "exact";
    if (!isDescribed || entry === undefined) continue;
    try {
      const stats = lstatSync(path);
      if (!stats.isDirectory()) continue;
      chmodSync(path, extraction.style === "exact" ? entry.mode & 0o7777 : stats.mode & entry.mode & 0o777);
      if (extraction.style === "exact") setAttributes(path, entry, extraction);
      setTime(path, entry);
    } catch (error) {
      throw cannotWrite(path, error);
    }
  }
}

/** The hint about a name that this system doesn't allow for files. */
export const localNameAdvice =
  "`bough cp PATH -` writes an archive instead: unpack it on a system that allows such names.";
const archiveAdvice = "`bough cp PATH -` and `-o type=tar` write an archive instead.";

/** Throws if the destination of a directory is a file. */
export function refuseFile(local: string, stats: Stats | undefined, path: string): void {
  if (stats?.isDirectory() !== false) return;
  throw usageError(`${local} is a file, but ${path} is a directory`);
}
