/** The archive of an image's files as docker writes it. */

import { layerHeader } from "./layer-header.ts";
import { endBytes, padding } from "./tar-header.ts";
import { readTreeTar, type TarEntry } from "./tar-reader.ts";

/** The files of an image, and the directory of the archive that they go into: it ends with a slash, and is empty for the root. */
export interface TreeToWrite {
  tree: AsyncIterable<Uint8Array>;
  prefix: string;
}

/**
 * Joins the archives of images' files, whose names begin with `./`, to one whose names don't, without an entry for the root: `tar -x f`
 * finds `f` in it. Times are whole seconds.
 *
 * @param time the time of all entries, in place of their own
 */
export async function* writeTreeTar(
  trees: readonly TreeToWrite[],
  time: number | undefined,
): AsyncGenerator<Uint8Array> {
  for (const { tree, prefix } of trees) {
    if (prefix !== "") yield directoryHeader(prefix, time);
    for await (const entry of readTreeTar(tree)) yield* writeEntry(entry, prefix, time);
  }
  yield new Uint8Array(endBytes);
}

function directoryHeader(name: string, time = 0): Uint8Array {
  const owned = { mode: 0o755, uid: 0, gid: 0 };
  return layerHeader({ name: Buffer.from(name), flag: "5", ...owned, size: 0, modified: time });
}

const flags = { file: "0", directory: "5", symlink: "2", hardlink: "1" } as const;
type Flag = Parameters<typeof layerHeader>[0]["flag"];

async function* writeEntry(
  entry: TarEntry,
  prefix: string,
  time: number | undefined,
): AsyncGenerator<Uint8Array> {
  const place = (name: string) => Buffer.from(prefix + name.replace(/^(\.?\/)+/, ""), "latin1");
  const name = entry.name.replace(/^\.$/, "./");
  if (/^(\.?\/)+$/.test(name)) return;
  const { type, mode, uid, gid, major, minor, attributes, modified } = entry;
  const size = type === "file" ? entry.size : 0;
  yield layerHeader({
    ...{ mode, uid, gid, size, attributes },
    name: place(name),
    flag: type === "other" ? (entry.flag as Flag) : flags[type],
    modified: time ?? Math.floor(modified),
    target:
      type === "hardlink"
        ? place(entry.target)
        : type === "symlink"
          ? Buffer.from(entry.target, "latin1")
          : undefined,
    device: type === "other" ? { major, minor } : undefined,
  });
  if (type !== "file") return;
  let at = 0;
  for await (const { offset, bytes } of entry.pieces()) {
    yield* zeros(offset - at);
    yield bytes;
    at = offset + bytes.byteLength;
  }
  yield* zeros(size - at + padding(size));
}

const zeroBlock = new Uint8Array(64 * 1024);

function* zeros(count: number): Generator<Uint8Array> {
  for (let left = count; left > 0; left -= zeroBlock.byteLength)
    yield zeroBlock.subarray(0, Math.min(left, zeroBlock.byteLength));
}
