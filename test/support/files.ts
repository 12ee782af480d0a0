import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A file's text, or a file with a mode, a symbolic link, or an empty directory. */
export type FileSpec = string | { text: string; mode: number } | { link: string } | "directory/";

/** Writes files below `directory`, by path; parents are made. */
export function writeFiles(directory: string, files: Readonly<Record<string, FileSpec>>): void {
  for (const [name, spec] of Object.entries(files)) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    if (spec === "directory/") mkdirSync(path, { recursive: true });
    else if (typeof spec === "string") writeFileSync(path, spec);
    else if ("link" in spec) symlinkSync(spec.link, path);
    else {
      writeFileSync(path, spec.text);
      chmodSync(path, spec.mode);
    }
  }
}
