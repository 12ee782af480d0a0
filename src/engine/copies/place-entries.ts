import { chownSync, lchownSync, symlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { giveAttributes } from "../system/owner-and-mode.ts";
import { createDirectoryMaker } from "./directory-maker.ts";
import type { PlacedEntry } from "./entry-spec.ts";
import type { UpperTree } from "./upper-tree.ts";

/** Makes directories and links in a tree that is not mounted, as COPY does: a link replaces anything but a directory. */
export async function placeEntries(
  to: UpperTree,
  entries: readonly PlacedEntry[],
  pace: Pace,
): Promise<void> {
  let directoryAt = createDirectoryMaker(to);
  for (const entry of entries) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    if (entry.type === "directory") placeDirectory(to, directoryAt, entry);
    // The replaced entry may have been a link in a known path.
    else if (placeLink(to, directoryAt, entry)) directoryAt = createDirectoryMaker(to);
  }
}

function placeDirectory(
  to: UpperTree,
  directoryAt: ReturnType<typeof createDirectoryMaker>,
  { path, mode, uid, gid }: PlacedEntry & { type: "directory" },
): void {
  const fail = (inside: string) =>
    new BoughError(`cannot make the directory ${path}: ${inside} in the image is not a directory`);
  const parent = directoryAt(dirname(path), fail);
  const isThere = to.find(parent, basename(path)) !== undefined;
  const directory = directoryAt(path, fail);
  if (mode !== undefined) {
    to.materialize(directory);
    giveAttributes(directory.path, { uid, gid }, { mode });
  } else if (!isThere) chownSync(directory.path, uid, gid);
}

/** Makes a link. Returns true if it replaced something. */
function placeLink(
  to: UpperTree,
  directoryAt: ReturnType<typeof createDirectoryMaker>,
  { path, target, uid, gid }: PlacedEntry & { type: "symlink" },
): boolean {
  const parent = directoryAt(
    dirname(path),
    (inside) => new BoughError(`cannot make the link ${path}: ${inside} in the image is not a directory`),
  );
  const name = basename(path);
  const existing = to.find(parent, name);
  if (existing?.stats.isDirectory())
    throw new BoughError(`cannot make the link ${path}: there is a directory in the image`);
  const place = to.clear(parent, name);
  symlinkSync(target, place);
  lchownSync(place, uid, gid);
  return existing !== undefined;
}
