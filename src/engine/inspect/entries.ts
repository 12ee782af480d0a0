import { lstatSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { isDate } from "../../clock.ts";
import { formatMode } from "../../image/file-mode.ts";
import { accountNames } from "../sandbox/root/accounts.ts";
import type { MergedEntry } from "../sandbox/root/layer-tree.ts";
import { entryType, type Path, pathBytes } from "../system/path.ts";
import type { ExistingPath, UnmountedView } from "./image-path.ts";

/** An item of the response of `GET /v1/inspect/{uuid}/list`. */
export interface FileItem {
  path: string;
  size: number;
  /** The name, if the image's own /etc/passwd or /etc/group has it, else the number. */
  owner: string | number;
  group: string | number;
  uid: number;
  gid: number;
  mode: number;
  /** Seconds since the epoch. */
  mtime: number;
  nlink: number;
  is_dir: boolean;
  is_regular: boolean;
  is_symlink: boolean;
  is_socket: boolean;
  is_fifo: boolean;
  /** Empty for what is not a link. */
  symlink_to: string;
}

export type NamedEntry = Pick<MergedEntry, "name" | "path" | "type">;

/** Returns a directory's entries, in no particular order; for any other file, that file alone. */
export function entriesAt(
  { tree }: Pick<UnmountedView, "tree">,
  { inside, path, stats }: Pick<ExistingPath, "inside" | "path" | "stats">,
): NamedEntry[] {
  if (stats.isDirectory()) return tree.list(tree.enterPath(inside));
  return [{ name: basename(inside), path, type: entryType(stats) }];
}

/** Describes a directory's entries, sorted by their names' bytes; for any other file, that file alone. */
export function describeEntries(view: UnmountedView, found: ExistingPath): FileItem[] {
  const names = accountNames(view.root, view.locate);
  return entriesAt(view, found)
    .map((entry) => ({ name: pathBytes(entry.name), path: entry.path }))
    .sort((one, other) => Buffer.compare(one.name, other.name))
    .map((entry) => describeEntry(entry.name, entry.path, names));
}

/** Formats items as `ls -l` does. */
export function formatEntries(items: readonly FileItem[]): string {
  const rows = items.map((item) => [
    formatMode(item.mode, typeOfItem(item)),
    String(item.nlink),
    String(item.owner),
    String(item.group),
    String(item.size),
    formatTime(item.mtime),
    item.is_symlink ? `${item.path} -> ${item.symlink_to}` : item.path,
  ]);
  const widths = [0, 1, 2, 3, 4].map((column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 1 || column === 4 ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(" "),
  );
  return lines.map((line) => `${line}\n`).join("");
}

function formatTime(seconds: number): string {
  if (!isDate(seconds)) return String(seconds);
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function describeEntry(name: Buffer, path: Path, names: ReturnType<typeof accountNames>): FileItem {
  const stats = lstatSync(path);
  return {
    path: name.toString(),
    size: stats.size,
    owner: names.user(stats.uid),
    group: names.group(stats.gid),
    uid: stats.uid,
    gid: stats.gid,
    mode: stats.mode,
    mtime: Math.floor(stats.mtimeMs / 1000),
    nlink: stats.nlink,
    is_dir: stats.isDirectory(),
    is_regular: stats.isFile(),
    is_symlink: stats.isSymbolicLink(),
    is_socket: stats.isSocket(),
    is_fifo: stats.isFIFO(),
    symlink_to: stats.isSymbolicLink() ? readlinkSync(path, "utf8") : "",
  };
}

function typeOfItem(item: FileItem): Parameters<typeof formatMode>[1] {
  if (item.is_dir) return "directory";
  if (item.is_symlink) return "symlink";
  if (item.is_socket) return "socket";
  if (item.is_fifo) return "fifo";
  // The API has no field for a device.
  return item.is_regular ? "file" : "other";
}
