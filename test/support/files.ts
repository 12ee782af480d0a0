import { chmodSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A file's text or bytes, or a file with a mode, a symbolic link, a hard link, an empty directory, or a directory's mode. */
export type FileSpec =
  | string
  | Uint8Array
  | { text: string; mode: number }
  | { link: string }
  /** Another of the files, written before it. */
  | { hardLink: string }
  | "directory/"
  | { mode: number };

/** Writes files below `directory`, by path, with their parent directories. Directories get their modes at the end. */
export function writeFiles(directory: string, files: Readonly<Record<string, FileSpec>>): void {
  const directoryModes: [string, number][] = [];
  for (const [name, spec] of Object.entries(files)) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    if (spec === "directory/") mkdirSync(path, { recursive: true });
    else if (typeof spec === "string" || spec instanceof Uint8Array) writeFileSync(path, spec);
    else if ("link" in spec) symlinkSync(spec.link, path);
    else if ("hardLink" in spec) linkSync(join(directory, spec.hardLink), path);
    else if ("text" in spec) {
      writeFileSync(path, spec.text);
      chmodSync(path, spec.mode);
    } else {
      mkdirSync(path, { recursive: true });
      directoryModes.push([path, spec.mode]);
    }
  }
  for (const [path, mode] of directoryModes) chmodSync(path, mode);
}
