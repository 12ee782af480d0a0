import { closeSync, constants, fstatSync, lstatSync, openSync, read, realpathSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import type { ByteSource } from "../../image/tar-source.ts";
import { errorCode } from "../../system-error.ts";
import { maxImageJsonBytes } from "../import-limits.ts";

/** The files of an image on disk, by name, such as `index.json`. The image is a directory or an archive. */
export interface ImportFiles {
  /** Returns `undefined` if there is no such file. Throws if it is not a regular file inside the image. */
  find(name: string): ImportFile | undefined;
}

export interface ImportFile {
  /** A name for messages. */
  name: string;
  size: number;
  place: FilePart;
  /** True if this is a whole file that belongs to the import and may be moved. */
  isOwn?: boolean;
}

/** A range of bytes in a file on this machine. */
export interface FilePart {
  path: string;
  offset: number;
  length: number;
  /** The file's name in messages. */
  name: string;
  /** Additional flags of open(2). */
  flags?: number;
}

/** Returns a name that the image's author chose, for messages: quoted if it could be mistaken for something else. */
export function quoteName(name: string): string {
  return /^[\w./:@+-]{1,200}$/.test(name) ? name : JSON.stringify(name.slice(0, 200));
}

/** Returns the only image in a list; throws if there are none or several. `names` returns all names in the archive, for the hint. */
export function requireOnly<T>(
  [first, ...others]: readonly T[],
  { archive, reference, names }: { archive: string; reference: string | undefined; names: () => string[] },
): T {
  if (first !== undefined && others.length === 0) return first;
  const shown = names().slice(0, 10).map(quoteName).join(", ");
  const hint = shown === "" ? {} : { hint: `It has ${shown}: add one of these after a colon.` };
  if (first !== undefined) throw new BoughError(`${archive} has more than one image`, hint);
  throw new BoughError(
    reference === undefined ? `${archive} has no image` : `${archive}: there is no image of that name`,
    hint,
  );
}

const chunkBytes = 128 * 1024;

/** Opens a regular file. Throws for a device or a pipe, which could block its reader forever. */
export function openRegular(path: string, flags = 0): { descriptor: number; size: number } {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  const stats = fstatSync(descriptor);
  if (stats.isFile()) return { descriptor, size: stats.size };
  closeSync(descriptor);
  throw new BoughError(`${path} is not a regular file`);
}

/** Reads a part of a file in pieces. Rejects if it is not a regular file, cannot be read, or has become shorter. */
export function readPart(part: FilePart): AsyncGenerator<Uint8Array> {
  return readFrom(part, { done: 0 });
}

/** Opens a part of a file like `readPart`, so that bytes that are not needed can be skipped. */
export function openPart(part: FilePart): ByteSource {
  const progress = { done: 0 };
  return {
    [Symbol.asyncIterator]: () => readFrom(part, progress),
    skip(bytes) {
      progress.done += bytes;
      return progress.done <= part.length;
    },
  };
}

async function* readFrom(
  { path, offset, length, name, flags }: FilePart,
  progress: { done: number },
): AsyncGenerator<Uint8Array> {
  const { descriptor } = openRegular(path, flags);
  try {
    while (progress.done < length) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, length - progress.done));
      const bytesRead = await readAt(descriptor, buffer, offset + progress.done);
      if (bytesRead === 0) throw new BoughError(`${name} became shorter while it was read`);
      progress.done += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    closeSync(descriptor);
  }
}

function readAt(descriptor: number, buffer: Uint8Array, position: number): Promise<number> {
  return new Promise((resolve, reject) =>
    read(descriptor, buffer, 0, buffer.byteLength, position, (error, bytesRead) =>
      error ? reject(error) : resolve(bytesRead),
    ),
  );
}

/**
 * Opens the files of an image that is a directory. The path of the directory may contain links. Links inside it are not followed,
 * since the image's author chose their targets. `isOwn` is true if the directory belongs to the import.
 */
export function openDirectoryFiles(directory: string, isOwn = false): ImportFiles {
  const root = realpathSync(directory);
  return {
    find(name) {
      const path = join(root, name);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) return undefined;
      if (!isPlain(path))
        throw new BoughError(
          `${path} is a symbolic link or is reached through one, which is not allowed here`,
        );
      if (!stats.isFile()) throw new BoughError(`${path} is not a regular file`);
      const { size } = stats;
      const place = { path, offset: 0, length: size, name: path, flags: constants.O_NOFOLLOW };
      return { name: path, size, place, isOwn };
    },
  };
}

/** Returns true if no part of `path`, which is below a real path, is a link. */
function isPlain(path: string): boolean {
  try {
    return realpathSync(path) === path;
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes(errorCode(error) ?? "")) return false;
    throw error;
  }
}

export type JsonObject = Record<string, unknown>;

/** Reads a manifest, an index or a configuration. Throws if it is larger than registries allow. */
export async function readManifestFile(file: ImportFile): Promise<Uint8Array> {
  if (file.size > maxImageJsonBytes) {
    throw new BoughError(`${file.name} is too large for a manifest: ${file.size} bytes`);
  }
  return Buffer.concat(await Array.fromAsync(readPart(file.place)));
}

/** Parses JSON in UTF-8. */
export function parseJsonBytes(bytes: Uint8Array, name: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new BoughError(`${name} is not JSON`);
  }
}

export function asObject(value: unknown, name: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new BoughError(`${name} is malformed: expected an object`);
}

/** Returns a list of objects; an empty one if the value is missing. */
export function asObjects(value: unknown, name: string): JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new BoughError(`${name} is malformed: expected a list`);
  return value.map((item) => asObject(item, name));
}

/** Returns a list of texts; an empty one if the value is missing. */
export function asTexts(value: unknown, name: string): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw new BoughError(`${name} is malformed: expected a list of strings`);
}

export function optionalText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
