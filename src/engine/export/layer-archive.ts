import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { isWhiteoutName, whiteoutNameError, whiteoutPrefix } from "../../image/archive-limits.ts";
import { type LayerEntry, layerHeader, opaqueWhiteout } from "../../image/layer-header.ts";
import { endBytes, padding } from "../../image/tar-header.ts";
import { contentBlocks, inChunks } from "../records/archive-chunks.ts";
import { joinPath, listDirectory, type Path, pathBytes } from "../system/path.ts";
import { deviceOf, isOpaque, isWhiteout, readAttributes } from "../system/xattrs.ts";

export interface LayerArchiveOptions {
  /** True in a user namespace, in which overlayfs's attributes are `user.overlay.*`. */
  inUserNamespace: boolean;
  /** The latest modification time, in seconds since the epoch; later ones are set to it. */
  clampTo: number | undefined;
  signal?: AbortSignal;
}

/**
 * Archives a layer's directory as an OCI layer: overlayfs's whiteouts and opaque marks become `.wh.<name>` and `.wh..wh..opq`.
 * The same directory always gives the same bytes: names are sorted by their bytes, and times are whole seconds.
 * https://github.com/opencontainers/image-spec/blob/main/layer.md
 */
export function streamLayer(directory: string, options: LayerArchiveOptions): AsyncGenerator<Uint8Array> {
  return inChunks(layerBlocks(directory, options), options.signal);
}

/** An entry of the layer. */
interface ArchivedEntry {
  /** The entry's path on this machine. */
  path: Path;
  /** The entry's path in the layer, without a slash at either end; empty for the root. */
  inside: Buffer;
}

/** Yields the blocks of the archive, depth first, without recursion: a tree may be too deep for the stack. */
function* layerBlocks(directory: string, options: LayerArchiveOptions): Generator<Uint8Array> {
  const linked = new Map<string, Buffer>();
  const waiting: ArchivedEntry[] = [{ path: directory, inside: Buffer.alloc(0) }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const stats = lstatSync(place.path);
    yield* entryBlocks(place, stats, linked, options);
    if (!stats.isDirectory()) continue;
    const names = listDirectory(place.path).map(({ name }) => pathBytes(name));
    // The last name pushed is taken first.
    for (const name of names.sort(Buffer.compare).reverse()) {
      waiting.push({ path: joinPath(place.path, name), inside: below(place.inside, name) });
    }
  }
  yield new Uint8Array(endBytes);
}

function* entryBlocks(
  { path, inside }: ArchivedEntry,
  stats: Stats,
  linked: Map<string, Buffer>,
  { inUserNamespace, clampTo }: LayerArchiveOptions,
): Generator<Uint8Array> {
  const name = lastName(inside);
  if (isWhiteout(stats)) {
    yield layerHeader(
      whiteoutHeader(below(parentOf(inside), Buffer.concat([Buffer.from(whiteoutPrefix), name]))),
    );
    return;
  }
  // Layers of earlier versions may have such names.
  if (isWhiteoutName(name)) throw whiteoutNameError(`/${inside}`, "Build the image again without that file.");
  const modified = Math.floor(stats.mtimeMs / 1000);
  const entry = {
    mode: stats.mode & 0o7777,
    uid: stats.uid,
    gid: stats.gid,
    size: 0,
    modified: clampTo === undefined ? modified : Math.min(modified, clampTo),
    attributes: readAttributes(path),
  };
  if (stats.isDirectory()) {
    const isRoot = inside.byteLength === 0;
    yield layerHeader({ ...entry, name: Buffer.concat([isRoot ? dot : inside, slash]), flag: "5" });
    if (!isRoot && isOpaque(path, inUserNamespace))
      yield layerHeader(whiteoutHeader(below(inside, Buffer.from(opaqueWhiteout))));
  } else if (stats.isSymbolicLink()) {
    const target = readlinkSync(path, "buffer");
    yield layerHeader({ ...entry, name: inside, flag: "2", mode: 0o777, target });
  } else if (stats.isFile()) {
    const key = stats.nlink > 1 ? inodeOf(path, stats) : undefined;
    const target = key === undefined ? undefined : linked.get(key);
    if (target !== undefined) {
      // A link has the attributes, too: Docker sets its owner again, which removes the file's capabilities.
      yield layerHeader({ ...entry, name: inside, flag: "1", target });
      return;
    }
    if (key !== undefined) linked.set(key, inside);
    yield layerHeader({ ...entry, name: inside, flag: "0", size: stats.size });
    yield* contentBlocks(path, stats.size);
    yield new Uint8Array(padding(stats.size));
  } else if (!stats.isSocket()) {
    // tar has no sockets, and a socket is useless without its program.
    const flag = stats.isFIFO() ? "6" : stats.isBlockDevice() ? "4" : "3";
    yield layerHeader({ ...entry, name: inside, flag, device: deviceOf(stats.rdev) });
  }
}

/** Returns a file's inode, which may be too large for JavaScript's numbers. */
function inodeOf(path: Path, { ino }: Stats): string {
  return String(Number.isSafeInteger(ino) ? ino : lstatSync(path, { bigint: true }).ino);
}

const slash = Buffer.from("/");
const dot = Buffer.from(".");

/** Returns the entry of a whiteout: an empty file with a special name. */
function whiteoutHeader(name: Buffer): LayerEntry {
  return { name, flag: "0", mode: 0, uid: 0, gid: 0, size: 0, modified: 0 };
}

function below(directory: Buffer, name: Buffer): Buffer {
  return directory.byteLength === 0 ? name : Buffer.concat([directory, slash, name]);
}

function lastName(inside: Buffer): Buffer {
  return inside.subarray(inside.lastIndexOf("/") + 1);
}

function parentOf(inside: Buffer): Buffer {
  return inside.subarray(0, Math.max(inside.lastIndexOf("/"), 0));
}
