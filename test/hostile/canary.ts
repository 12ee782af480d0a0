/** A directory that no attack may change, with files of every kind, and a description of it to compare. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { type FileSpec, writeFiles } from "../support/files.ts";

export interface Canary {
  path: string;
  /** One of its files. */
  file: string;
  /** Names, types, modes, owners, times and contents, as text to compare. */
  state(): string;
}

/** Makes `<parent>/canary`, with `more` files in it. */
export function makeCanary(parent: string, more: Readonly<Record<string, FileSpec>> = {}): Canary {
  const path = join(parent, "canary");
  mkdirSync(path, { recursive: true });
  writeFiles(path, {
    file: "the canary sings\n",
    "deep/er/file": "here, too\n",
    "deep/link": { link: "../file" },
    "etc/passwd": "canary:x:0:0::/:/bin/sh\n",
    secret: { text: "nobody else's\n", mode: 0o600 },
    ...more,
  });
  chmodSync(path, 0o755);
  return { path, file: join(path, "file"), state: () => describe(path) };
}

function describe(root: string): string {
  const names = ["", ...readdirSync(root, { recursive: true }).map(String)].sort();
  return names.map((name) => describeEntry(join(root, name), name)).join("\n");
}

function describeEntry(path: string, name: string): string {
  const { mode, uid, gid, nlink, mtimeMs, ...stats } = lstatSync(path);
  const kind = lstatSync(path);
  const content = kind.isSymbolicLink()
    ? readlinkSync(path)
    : kind.isFile()
      ? readFileSync(path, "utf8")
      : "";
  return JSON.stringify([name, mode.toString(8), uid, gid, nlink, mtimeMs, stats.size, content]);
}
