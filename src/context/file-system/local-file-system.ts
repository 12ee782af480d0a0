import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import type { FileSystem } from "./file-system.ts";
import { windowsFileSystem, withSlashes } from "./windows-file-system.ts";

const nativeFileSystem: FileSystem = {
  readDirectory: (path) => readdirSync(path),
  stat: (path) => lstatSync(path),
  readLink: (path) => readlinkSync(path),
};

/** The machine's file system, with `/` in paths on every platform. */
export const localFileSystem: FileSystem =
  process.platform === "win32" ? windowsFileSystem(nativeFileSystem) : nativeFileSystem;

/** Converts a path that comes from the system or from a user to that form. */
export const localPath: (path: string) => string =
  process.platform === "win32" ? withSlashes : (path) => path;
