/**
 * Paths in a layer as text that has one character for each byte (latin1): nothing is lost of a name that is not UTF-8, and pieces
 * can be compared and put together.
 */
import type { Path } from "../copies/path.ts";

export type BytePath = string;

/** Returns what calls of the file system take. */
export function toPath(path: BytePath): Path {
  return Buffer.byteLength(path) === path.length ? path : Buffer.from(path, "latin1");
}

export function fromText(path: string): BytePath {
  return Buffer.from(path).toString("latin1");
}

/** Returns what messages show. */
export function showPath(path: BytePath): string {
  return JSON.stringify(Buffer.from(path, "latin1").toString().slice(0, 200));
}

/** The names of a path, without those that mean nothing; `..` leads no further up than the layer's own root. */
export function namesIn(path: BytePath): BytePath[] {
  const names: BytePath[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names;
}
