/**
 * Paths in a layer as text with one character per byte (latin1). A name that is not UTF-8 loses nothing, and parts can be
 * compared and joined.
 */
import type { Path } from "../system/path.ts";

export type BytePath = string;

/** Returns a path for file system calls. */
export function toPath(path: BytePath): Path {
  return Buffer.byteLength(path) === path.length ? path : Buffer.from(path, "latin1");
}

export function fromText(path: string): BytePath {
  return Buffer.from(path).toString("latin1");
}

/** Returns a path for messages. */
export function showPath(path: BytePath): string {
  return JSON.stringify(Buffer.from(path, "latin1").toString().slice(0, 200));
}

/** Returns a path's names, without empty ones and `.`; `..` never leads above the layer's root. */
export function namesIn(path: BytePath): BytePath[] {
  const names: BytePath[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names;
}
