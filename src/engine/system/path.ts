import { lstatSync, readdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";

/** A path or a name. On Linux it is bytes; nearly all are UTF-8, and are kept as text. */
export type Path = string | Buffer;

export type EntryType = "file" | "directory" | "symlink" | "other";

const slash = Buffer.from("/");

export function joinPath(directory: Path, name: Path): Path {
  if (typeof directory === "string" && typeof name === "string") return `${directory}/${name}`;
  return Buffer.concat([bytesOf(directory), slash, bytesOf(name)]);
}

export function bytesOf(path: Path): Buffer {
  return typeof path === "string" ? Buffer.from(path) : path;
}

/** Returns a key that is equal only for equal bytes. */
export function keyOf(name: Path): string {
  return typeof name === "string" ? name : `\0${name.toString("latin1")}`;
}

/** Lists a directory's entries in no particular order. */
export function listDirectory(directory: Path): { name: Path; type: EntryType }[] {
  if (typeof directory === "string") {
    const entries = readdirSync(directory, { withFileTypes: true });
    if (!entries.some(({ name }) => name.includes("\uFFFD")))
      return entries.map((entry) => ({ name: entry.name, type: typeOf(entry) }));
  }
  return readdirSync(bytesOf(directory), "buffer").map((bytes) => {
    const type = typeOf(lstatSync(joinPath(directory, bytes)));
    const text = bytes.toString();
    return { name: Buffer.from(text).equals(bytes) ? text : bytes, type };
  });
}

/** Does work on the tree at `place` in an image, and explains the error of a path that is too long for Linux. */
export async function withinPathLimit<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (errorCode(error) !== "ENAMETOOLONG") throw error;
    throw new BoughError(`${place}: a path in it is longer than Linux allows`, { cause: error });
  }
}

export function typeOf(entry: {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}): EntryType {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "symlink" : "other";
}
