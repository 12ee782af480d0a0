/** Extended attributes and device files, by the C library's functions: neither Bun nor Node has calls for them. */
import { constants, type Stats } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import { once } from "../../once.ts";
import { openLibrary } from "../../programs/libc.ts";
import { type Path, pathBytes } from "./path.ts";

/** The kernel's limits (limits.h: XATTR_LIST_MAX, XATTR_SIZE_MAX). */
const maxBytes = 65_536;

/** Attributes that belong to the file system that a file is on, not to the file. */
const fileSystemAttribute = /^(trusted|user)\.overlay\.|^security\.selinux$/;

interface Attribute {
  name: string;
  value: Buffer;
}

const list = Buffer.alloc(maxBytes);
const content = Buffer.alloc(maxBytes);

/** Returns the extended attributes of a file itself (links are not followed), without overlayfs's and SELinux's. */
export function readAttributes(path: Path): Attribute[] {
  const file = terminate(path);
  const length = Number(library().llistxattr(file, list, maxBytes));
  if (length <= 0) return [];
  const names = list.toString("latin1", 0, length - 1).split("\0");
  return names.flatMap((name) => {
    const value = isFileSystemAttribute(name) ? undefined : readValue(file, name);
    return value === undefined ? [] : [{ name, value }];
  });
}

/** Returns true for an attribute that belongs to the file system that a file is on, not to the file. */
export function isFileSystemAttribute(name: string): boolean {
  return fileSystemAttribute.test(name);
}

/** Returns true if a file has an extended attribute. */
export function hasAttribute(path: Path, name: string): boolean {
  return readValue(terminate(path), name) !== undefined;
}

/** Writes attributes. Ignores failures, as BuildKit does: the file system or this process's rights may not allow them. */
export function writeAttributes(path: Path, attributes: readonly Attribute[]): void {
  if (attributes.length === 0) return;
  const file = terminate(path);
  for (const { name, value } of attributes) {
    // An empty buffer has no address.
    const bytes = value.length === 0 ? list : value;
    library().lsetxattr(file, terminate(Buffer.from(name, "latin1")), bytes, value.length, 0);
  }
}

/** Returns true if overlayfs hides the lower layers' content of this directory. */
export function isOpaque(directory: Path, inUserNamespace: boolean): boolean {
  return readValue(terminate(directory), opaqueName(inUserNamespace))?.toString("latin1") === "y";
}

export function markOpaque(directory: Path, inUserNamespace: boolean): void {
  const name = opaqueName(inUserNamespace);
  writeAttributes(directory, [{ name, value: Buffer.from("y") }]);
  if (!isOpaque(directory, inUserNamespace))
    throw new BoughError(`cannot set the attribute ${name} on ${directory}, which overlayfs needs`, {
      hint: "The engine's directory must be on ext4, xfs, btrfs or tmpfs.",
    });
}

function opaqueName(inUserNamespace: boolean): string {
  return `${inUserNamespace ? "user" : "trusted"}.overlay.opaque`;
}

/** Makes a whiteout, which removes a name of lower layers. Returns false if this process may not. */
export function makeWhiteout(path: Path): boolean {
  return makeNode(path, constants.S_IFCHR, 0);
}

/** Makes a pipe, a socket or a device; `mode` has its type. Returns false if this process may not. */
export function makeNode(path: Path, mode: number, device: number): boolean {
  return library().mknod(terminate(path), mode, device) === 0;
}

/**
 * Combines a device's numbers as Linux does: 12 bits for the major and 20 for the minor number. Returns `undefined` for numbers
 * that Linux does not support.
 */
export function deviceNumber(major: number, minor: number): number | undefined {
  const fits = (number: number, bits: number) =>
    Number.isInteger(number) && number >= 0 && number < 2 ** bits;
  if (!fits(major, 12) || !fits(minor, 20)) return undefined;
  return ((minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12)) >>> 0;
}

/** Splits a device's number into its major and minor numbers. */
export function deviceOf(number: number): { major: number; minor: number } {
  return { major: (number >>> 8) & 0xfff, minor: (number & 0xff) | ((number >>> 12) & 0xfff00) };
}

function readValue(file: Buffer, name: string): Buffer | undefined {
  const key = terminate(Buffer.from(name, "latin1"));
  const length = Number(library().lgetxattr(file, key, content, maxBytes));
  return length < 0 ? undefined : Buffer.from(content.subarray(0, length));
}

function terminate(text: Path): Buffer {
  return Buffer.concat([pathBytes(text), end]);
}

const end = Buffer.alloc(1);

const library = once(() => {
  try {
    return openLibrary({
      llistxattr: { args: ["ptr", "ptr", "usize"], returns: "i64" },
      lgetxattr: { args: ["ptr", "ptr", "ptr", "usize"], returns: "i64" },
      lsetxattr: { args: ["ptr", "ptr", "ptr", "usize", "i32"], returns: "i32" },
      mknod: { args: ["ptr", "u32", "u64"], returns: "i32" },
    }).symbols;
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`the C library could not be opened: ${messageOf(error)}`, {
      hint: "Copies between images need glibc 2.33 or later, or musl.",
      cause: error,
    });
  }
});

/** Returns true for a whiteout, overlayfs's mark that hides an entry of the layers below: a character device 0:0. */
export function isWhiteout(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0;
}
