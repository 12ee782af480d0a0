import { lstatSync, readdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";

/** A path or a name. On Linux both are bytes. Nearly all are UTF-8, and are kept as text. */
export type Path = string | Buffer;

export type EntryType = "file" | "directory" | "symlink" | "other";

const slash = Buffer.from("/");

export function joinPath(directory: Path, name: Path): Path {
  if (typeof directory === "string" && typeof name === "string") return `${directory}/${name}`;
  return Buffer.concat([pathBytes(directory), slash, pathBytes(name)]);
}

export function pathBytes(path: Path): Buffer {
  return typeof path === "string" ? Buffer.from(path) : path;
}

/** Returns a key that is equal only for equal bytes. */
export function pathKey(name: Path): string {
  return typeof name === "string" ? name : `\0${name.toString("latin1")}`;
}

/** Lists a directory's entries in no particular order. */
export function listDirectory(directory: Path): { name: Path; type: EntryType }[] {
  if (typeof directory === "string") {
    const entries = readdirSync(directory, { withFileTypes: true });
    if (!entries.some(({ name }) => name.includes("\uFFFD")))
      return entries.map((entry) => ({ name: entry.name, type: entryType(entry) }));
  }
  return readdirSync(pathBytes(directory), "buffer").map((bytes) => {
    const type = entryType(lstatSync(joinPath(directory, bytes)));
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

export function entryType(entry: {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}): EntryType {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "symlink" : "other";
}

/**
 * A path in a layer as text with one character per byte (latin1). A name that is not UTF-8 loses nothing, and parts can be
 * compared and joined.
 */
export type BytePath = string;

/** Returns a path for file system calls. */
export function toPath(path: BytePath): Path {
  return Buffer.byteLength(path) === path.length ? path : Buffer.from(path, "latin1");
}

export function toBytePath(path: string): BytePath {
  return Buffer.from(path).toString("latin1");
}

/** Returns a path for messages. */
export function showPath(path: BytePath): string {
  return JSON.stringify(Buffer.from(path, "latin1").toString().slice(0, 200));
}

/** Returns a path's names, without empty ones and `.`; `..` never leads above the layer's root. */
export function pathNames(path: BytePath): BytePath[] {
  const names: BytePath[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names;
}
