import type { Stats } from "node:fs";
import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError } from "../../errors.ts";

/** Characters that are special in Windows paths and patterns, names of its devices, and endings that it drops. */
const notOnWindows = /[<>:"\\|?*\u0000-\u001f]|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)|[. ]$/i;

/** Rejects a file name from an image that means something else on this system: a path, a device, another file. */
export function checkLocalName(name: string, platform: NodeJS.Platform): void {
  if (platform !== "win32" || !notOnWindows.test(name)) return;
  throw new BoughError(`${displayPath(name)} can't be the name of a file on Windows`, {
    hint: "`bough cp PATH -` writes an archive instead: unpack it on a system that allows such names.",
  });
}

/** Throws if a directory of an image is to be copied to what is a file here. */
export function refuseFile(local: string, stats: Stats | undefined, path: string): void {
  if (stats?.isDirectory() !== false) return;
  throw new BoughError(`${local} is a file, but ${path} is a directory`, { kind: "usage" });
}
