import { lstatSync, readdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";

/** A path or a name on Linux is bytes: text where it is UTF-8, which nearly all are. */
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

/** The same for the same bytes, and for no others. */
export function keyOf(name: Path): string {
  return typeof name === "string" ? name : `\0${name.toString("latin1")}`;
}

/** What is in a directory, in no order. */
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

/** What is done with the tree at `place` in an image; its names may add up to more than a path can hold. */
export async function withinPathLimit<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (errorCode(error) !== "ENAMETOOLONG") throw error;
    throw new BoughError(`${place}: a path in it is longer than Linux takes`, { cause: error });
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
