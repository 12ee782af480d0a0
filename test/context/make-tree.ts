import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readPath } from "./case-file.ts";

const made: string[] = [];

/**
 * Makes a directory from lines such as `dir/file 0755`, `dir/`, `link -> target` and `pipe |`, with all parent
 * directories. A file's content is its own path.
 */
export function makeTree(lines: string): string {
  const root = mkdtempSync(join(tmpdir(), "bough-context-"));
  made.push(root);
  const modes: [string, number][] = [];
  for (const line of lines.split("\n")) {
    const [, written, kind = "", mode] =
      /^("(?:[^"\\]|\\.)*"|\S+)(?: (\||-> .*))?(?: (0[0-7]+))?$/.exec(line) ?? [];
    if (written === undefined) continue;
    const name = readPath(written);
    const path = join(root, name);
    mkdirSync(name.endsWith("/") ? path : dirname(path), { recursive: true });
    if (kind.startsWith("-> ")) symlinkSync(kind.slice(3), path);
    else if (kind === "|") Bun.spawnSync(["mkfifo", path]);
    else if (!name.endsWith("/")) writeFileSync(path, name);
    modes.push([path, mode === undefined ? (name.endsWith("/") ? 0o755 : 0o644) : Number.parseInt(mode, 8)]);
    if (kind !== "") modes.pop();
  }
  for (const [path, mode] of modes) chmodSync(path, mode);
  return root;
}

/** Removes the directories of `makeTree`. To be called in `afterEach`. */
export function removeTrees(): void {
  for (const root of made.splice(0)) rmSync(root, { recursive: true, force: true });
}
