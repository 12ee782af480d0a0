import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { inDirectory, inItsDirectory } from "../../open-without-links.ts";
import type { FileSystem } from "./file-system.ts";
import { windowsFileSystem, withSlashes } from "./windows-file-system.ts";

const nativeFileSystem: FileSystem = {
  readDirectory: (path) => inDirectory(path, (place) => readdirSync(place)),
  // This may be the state of another file if a directory is replaced by a link: then the file itself can't be opened.
  stat: (path) => lstatSync(path),
  readLink: (path) => inItsDirectory(path, (place) => readlinkSync(place)),
};

/** The machine's file system, with `/` in paths on every platform. Directories in paths must not be links. */
export const localFileSystem: FileSystem =
  process.platform === "win32" ? windowsFileSystem(nativeFileSystem) : nativeFileSystem;

/** Converts a path that comes from the system or from a user to that form. */
export const localPath: (path: string) => string =
  process.platform === "win32" ? withSlashes : (path) => path;
