import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import type { FileSystem } from "./file-system.ts";
import { windowsFileSystem, withSlashes } from "./windows-file-system.ts";

const nativeFileSystem: FileSystem = {
  readDirectory: (path) => readdirSync(path),
  stat: (path) => lstatSync(path),
  readLink: (path) => readlinkSync(path),
};

/** The machine's own, with `/` in paths everywhere. */
export const localFileSystem: FileSystem =
  process.platform === "win32" ? windowsFileSystem(nativeFileSystem) : nativeFileSystem;

/** The same for a path that comes from the system or from a user. */
export const localPath: (path: string) => string =
  process.platform === "win32" ? withSlashes : (path) => path;
