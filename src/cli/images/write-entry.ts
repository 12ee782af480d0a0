/** How a single entry of an archive becomes a file of this machine. */
import { chmodSync, constants, lutimesSync, rmSync, utimesSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { fileTime } from "../../clock.ts";
import { deviceNumber, makeNode, writeAttributes } from "../../engine/system/xattrs.ts";
import type { TarEntry } from "../../image/tar-reader.ts";

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
export async function writeFile(path: string, entry: TarEntry, options: EntryOptions): Promise<void> {
  await using file = await open(path, "wx", entry.mode & 0o777);
  try {
    await writePieces(file, entry, options.signal);
    if (options.style === "exact") {
      setAttributes(path, entry, options);
      await file.chmod(entry.mode & 0o7777);
    }
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

/** Makes a pipe or a device with the mode and time of its entry. Returns false if this system or user can't. */
export function makeSpecial(path: string, entry: TarEntry, { platform }: EntryOptions): boolean {
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
export function setAttributes(path: string, { attributes }: TarEntry, { platform }: EntryOptions): void {
  if (platform === "linux")
    writeAttributes(
      path,
      attributes.filter(({ name }) => name.startsWith("user.")),
    );
}

/** Sets the time of a file or a directory, or of a link itself. */
export function setTime(path: string, { type, modified }: TarEntry): void {
  if (!isDate(modified)) return;
  const set = type === "directory" ? utimesSync : lutimesSync;
  set(path, fileTime(modified), fileTime(modified));
}

/** True if the seconds since the epoch are in the range of JavaScript's dates: an archive may have any value. */
function isDate(seconds: number): boolean {
  return Math.abs(seconds) <= 8.64e12;
}
