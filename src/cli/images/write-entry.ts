/** How a single entry of an archive becomes a file of this machine. */
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
 * How entries are written. `plain`: as with `cp -r`, and with tar for an ordinary user: the umask cuts modes, setuid, setgid and sticky
 * bits and special files are left out, and what exists stays a directory or is replaced by a file, never the other way around. `exact`:
 * as docker writes a build's files: with all bits of their modes and, as root, devices, in place of whatever has their names.
 */
type Style = "plain" | "exact";

export interface EntryOptions {
  style: Style;
  signal: AbortSignal;
  platform: NodeJS.Platform;
}

/**
 * The flag `wx` refuses to write through a file or link that has appeared since. The umask cuts the mode. A file that is not
 * complete does not stay: nothing would tell it from a complete one.
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
 * Does the same with a file of this machine, whose bytes pass through the kernel only. Shares their blocks if the file system can do
 * that: a change to the copy does not change the file. From its beginning the copy has all bits of the file's mode, so a file that must
 * not have all of them is written instead: at no time may it run with another user's rights, or be open to others.
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
    // What has appeared at that path since is not this copy.
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

/** Makes a pipe or a device with the mode and time of its entry. Returns false if this system or user can't. */
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

/** Gives a file the attributes that users set. As docker's change of owner does, this drops capabilities. */
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
