import { closeSync, constants, fstatSync, openSync, read } from "node:fs";
import { BoughError } from "../../errors.ts";

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
  /** True if it is a whole file that belongs to the import and may be moved. */
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

/** Returns the only image in a list; throws if there are none or several. `names`: all names in the archive, for the hint. */
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
export async function* readPart({ path, offset, length, name, flags }: FilePart): AsyncGenerator<Uint8Array> {
  const { descriptor } = openRegular(path, flags);
  try {
    for (let done = 0; done < length; ) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, length - done));
      const bytesRead = await readAt(descriptor, buffer, offset + done);
      if (bytesRead === 0) throw new BoughError(`${name} became shorter while it was read`);
      done += bytesRead;
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
