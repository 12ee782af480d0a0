/** Writes a single entry of an archive as a file of this machine. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  ftruncateSync,
  futimesSync,
  lutimesSync,
  openSync,
  rmSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { copyFile } from "node:fs/promises";
import { fileTime, isDate } from "../../clock.ts";
import { deviceNumber, makeNode, writeAttributes } from "../../engine/system/xattrs.ts";
import type { TreeEntry } from "../../image/tree-entry.ts";
import { numericCalls } from "../../programs/libc.ts";
import { errorCode } from "../../system-error.ts";

/**
 * How entries are written. `plain`: as by `cp -r`, and by tar for an ordinary user. The umask applies to modes; setuid, setgid and sticky
 * bits and special files are left out; a directory never replaces a file, nor a file a directory. `exact`: as docker writes the files of
 * a build, with all mode bits and, as root, devices, in place of anything with the same name.
 */
type Style = "plain" | "exact";

export interface EntryOptions {
  style: Style;
  signal: AbortSignal;
  platform: NodeJS.Platform;
}

/**
 * Writes a new file. The flag `wx` prevents writing through a file or link that has appeared meanwhile. The umask applies to the mode.
 * An incomplete file is removed, since it would look like a complete one.
 */
export async function writeFile(path: string, entry: TreeEntry, options: EntryOptions): Promise<void> {
  const file = openSync(path, "wx", entry.mode & 0o777);
  try {
    if (!shareBlocks(file, entry, options)) await writePieces(file, entry, options.signal);
    setFileMetadata(file, path, entry, options);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/**
 * Writes a new file with the content of a file of this machine, which the kernel copies, or shares as blocks if the file system can: a
 * change to the copy never changes the original. The copy has all mode bits of the original from the start, so a file that must not have
 * all of them is written by `writeFile`: it must never run with another user's rights, or be open to others.
 */
export async function copyHostFile(
  path: string,
  hostPath: string | Buffer,
  entry: TreeEntry,
  options: EntryOptions,
): Promise<void> {
  const { mode } = entry;
  if (options.style === "plain" && mode !== (mode & 0o777 & ~process.umask()))
    return writeFile(path, entry, options);
  try {
    await copyFile(hostPath, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      setFileMetadata(file, path, entry, options);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    // A file that has appeared at the path meanwhile is not this copy.
    if (errorCode(error) !== "EEXIST") rmSync(path, { force: true });
    throw error;
  }
}

/** Lets a new file share the blocks of a file of this machine. Returns false if the file system can't do that. */
function shareBlocks(file: number, { hostPath }: TreeEntry, { platform }: EntryOptions): boolean {
  if (platform !== "linux" || hostPath === undefined) return false;
  const original = openSync(hostPath, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return numericCalls().ioctl(file, shareAllBlocks, original) === 0;
  } finally {
    closeSync(original);
  }
}

/** `FICLONE` of linux/fs.h. */
const shareAllBlocks = 0x40049409;

async function writePieces(file: number, entry: TreeEntry, signal: AbortSignal): Promise<void> {
  let end = 0;
  for await (const { offset, bytes } of entry.pieces()) {
    signal.throwIfAborted();
    for (let done = 0; done < bytes.byteLength; )
      done += writeSync(file, bytes, done, bytes.byteLength - done, offset + done);
    end = offset + bytes.byteLength;
  }
  // The rest is a hole.
  if (end !== entry.size) ftruncateSync(file, entry.size);
}

function setFileMetadata(file: number, path: string, entry: TreeEntry, options: EntryOptions): void {
  if (options.style === "exact") {
    setAttributes(path, entry, options);
    fchmodSync(file, entry.mode & 0o7777);
  }
  const { modified } = entry;
  if (isDate(modified)) futimesSync(file, fileTime(modified), fileTime(modified));
}

/** Creates a pipe or a device with the mode and time of its entry. Returns false if this system or user can't. */
export function makeSpecial(path: string, entry: TreeEntry, { platform }: EntryOptions): boolean {
  const { flag, mode, major, minor } = entry;
  if (platform !== "linux") return false;
  const type = { "3": constants.S_IFCHR, "4": constants.S_IFBLK, "6": constants.S_IFIFO }[flag];
  const device = flag === "6" ? 0 : deviceNumber(major, minor);
  if (type === undefined || device === undefined || !makeNode(path, type, device)) return false;
  chmodSync(path, mode & 0o7777);
  setTime(path, entry);
  return true;
}

/** Sets the extended attributes in the `user` namespace only. Capabilities are dropped, as by docker's change of owner. */
export function setAttributes(path: string, { attributes }: TreeEntry, { platform }: EntryOptions): void {
  if (platform === "linux")
    writeAttributes(
      path,
      attributes.filter(({ name }) => name.startsWith("user.")),
    );
}

/** Sets the time of a file or a directory, or of a link itself. */
export function setTime(path: string, { type, modified }: TreeEntry): void {
  if (!isDate(modified)) return;
  const set = type === "directory" ? utimesSync : lutimesSync;
  set(path, fileTime(modified), fileTime(modified));
}
