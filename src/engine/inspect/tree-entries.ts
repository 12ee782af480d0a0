import { closeSync, constants, lstatSync, readlinkSync, readSync, type Stats } from "node:fs";
import { BoughError } from "../../errors.ts";
import type { TarEntry } from "../../image/tar-reader.ts";
import type { TreeEntry } from "../../image/tree-entry.ts";
import { openForReading } from "../../open-for-reading.ts";
import { createPace } from "../../pace.ts";
import { RequestError } from "../http/responses.ts";
import { absentLayersOf } from "../records/absent-layers.ts";
import { findImage } from "../records/images.ts";
import type { LayerTree, MergedDirectory, MergedEntry } from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { type Path, pathBytes } from "../system/path.ts";
import { deviceOf, readAttributes } from "../system/xattrs.ts";
import { findInView, viewLayers } from "./image-path.ts";

/**
 * Reads a directory of an image from the directories of its layers: without a mount, and without an archive of all contents. Returns
 * `undefined` if that is impossible. A request for the archive then has the error, or fetches absent layers.
 */
export function openImageTree(
  state: EngineState,
  uuid: string,
  path: string,
  signal: AbortSignal,
): AsyncIterable<TreeEntry> | undefined {
  const image = findImage(state, uuid);
  if (image === undefined || absentLayersOf(state.database, image.layer).length > 0) return undefined;
  const view = viewLayers(state, image);
  try {
    const { inside, stats } = findInView(view, path);
    return stats.isDirectory() ? readTree(view.tree, view.tree.enterPath(inside), signal) : undefined;
  } catch (error) {
    if (error instanceof RequestError) return undefined;
    throw error;
  }
}

/** Yields entries in the order of an archive with sorted names. It is not recursive, since a tree may be too deep for the stack. */
async function* readTree(
  tree: LayerTree,
  root: MergedDirectory,
  signal: AbortSignal,
): AsyncGenerator<TreeEntry> {
  const pace = createPace(signal);
  /** The first name of each hard-linked file. */
  const linked = new Map<string, string>();
  const childrenOf = (directory: MergedDirectory, prefix: string) =>
    tree
      .list(directory)
      .sort((one, other) => Buffer.compare(pathBytes(other.name), pathBytes(one.name)))
      .map((entry) => ({ entry, directory, name: `${prefix}${entry.name.toString()}` }));
  const waiting = childrenOf(root, "");
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { entry, directory, name } = next;
    const stats = lstatSync(entry.path);
    if (stats.isSocket()) continue;
    yield describe(entry, name, stats, linked);
    if (!stats.isDirectory()) continue;
    for (const child of childrenOf(tree.enter(directory, entry.name), `${name}/`)) waiting.push(child);
  }
}

function describe(
  { path, layer }: MergedEntry,
  name: string,
  stats: Stats,
  linked: Map<string, string>,
): TreeEntry {
  const key = stats.nlink > 1 && stats.isFile() ? `${layer}:${stats.ino}` : undefined;
  const first = key === undefined ? undefined : linked.get(key);
  if (key !== undefined && first === undefined) linked.set(key, name);
  const isSparse = stats.blocks * blockBytes < stats.size;
  return {
    ...{ name, ...typeOf(stats, first) },
    ...{ mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid, modified: stats.mtimeMs / 1000 },
    ...deviceOf(stats.rdev),
    attributes: stats.isSymbolicLink() ? [] : readAttributes(path),
    target: first ?? (stats.isSymbolicLink() ? readlinkSync(path, "utf8") : ""),
    size: stats.isFile() ? stats.size : 0,
    hostPath: !isSparse && stats.isFile() && isHostSize(stats.size) ? path : undefined,
    pieces: () => readPieces(path, stats.size),
  };
}

/** The unit of `st_blocks`. */
const blockBytes = 512;

/**
 * A smaller file passes through this process in less time than another thread takes to begin, and the copy of a larger one could not be
 * interrupted for seconds.
 */
function isHostSize(size: number): boolean {
  return size >= 256 * 1024 && size <= 1024 ** 3;
}

function typeOf(stats: Stats, first: string | undefined): Pick<TarEntry, "type" | "flag"> {
  if (first !== undefined) return { type: "hardlink", flag: "1" };
  if (stats.isFile()) return { type: "file", flag: "0" };
  if (stats.isDirectory()) return { type: "directory", flag: "5" };
  if (stats.isSymbolicLink()) return { type: "symlink", flag: "2" };
  if (stats.isFIFO()) return { type: "other", flag: "6" };
  return { type: "other", flag: stats.isBlockDevice() ? "4" : "3" };
}

/** Yields a file's content without parts that are zeros, as the holes of a sparse file are. */
async function* readPieces(path: Path, size: number): ReturnType<TarEntry["pieces"]> {
  if (size === 0) return;
  const descriptor = openForReading(path, constants.O_NOFOLLOW);
  try {
    for (let offset = 0; offset < size; ) {
      const bytes = Buffer.allocUnsafe(Math.min(size - offset, chunkBytes));
      const length = readSync(descriptor, bytes);
      if (length === 0) throw new BoughError(`${path} has become shorter while it was read`);
      const piece = bytes.subarray(0, length);
      if (!piece.equals(zeros.subarray(0, length))) yield { offset, bytes: piece };
      offset += length;
    }
  } finally {
    closeSync(descriptor);
  }
}

const chunkBytes = 64 * 1024;
const zeros = Buffer.alloc(chunkBytes);
