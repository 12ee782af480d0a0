import { chownSync, constants, lchownSync, lutimesSync, symlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { fileTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { setOwnerAndModeAt } from "../system/owner-and-mode.ts";
import type { Path } from "../system/path.ts";
import { deviceNumber, makeNode } from "../system/xattrs.ts";
import type { PlacedEntry } from "./file-spec.ts";
import { createDirectoryMaker, setExtendedAttributes, type UpperTree } from "./upper-tree.ts";

/**
 * Makes directories, links and special files in a tree that is not mounted, as COPY does: a link replaces anything but a
 * directory. An entry with `replaces` replaces anything, but a directory is merged with a directory.
 *
 * @returns a function that sets the directories' times, to be called once everything is in them
 */
export async function placeEntries(
  to: UpperTree,
  entries: readonly PlacedEntry[],
  pace: Pace,
): Promise<() => void> {
  const times: { path: Path; mtime: number }[] = [];
  let directoryAt = createDirectoryMaker(to);
  for (const entry of entries) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { path, hasReplaced } =
      entry.type === "directory"
        ? placeDirectory(to, directoryAt, entry)
        : placeOther(to, directoryAt, entry);
    setExtendedAttributes(path, entry);
    const { mtime } = entry;
    if (mtime !== undefined && entry.type === "directory") times.push({ path, mtime });
    else if (mtime !== undefined) lutimesSync(path, fileTime(mtime), fileTime(mtime));
    // The replaced entry may have been a link in a known path.
    if (hasReplaced) directoryAt = createDirectoryMaker(to);
  }
  return () => {
    for (const { path, mtime } of times) lutimesSync(path, fileTime(mtime), fileTime(mtime));
  };
}

type DirectoryMaker = ReturnType<typeof createDirectoryMaker>;

interface PlacedPath {
  /** The entry's path in the upper directory. */
  path: Path;
  /** True if the entry has replaced another one. */
  hasReplaced: boolean;
}

function placeDirectory(
  to: UpperTree,
  directoryAt: DirectoryMaker,
  { path, mode, uid, gid, mtime, replaces }: PlacedEntry & { type: "directory" },
): PlacedPath {
  const fail = (inside: string) =>
    new BoughError(`cannot make the directory ${path}: ${inside} in the image is not a directory`);
  const name = basename(path);
  const parent = directoryAt(dirname(path), fail);
  const existing = to.find(parent, name);
  const hasReplaced = replaces === true && existing !== undefined && !existing.stats.isDirectory();
  if (hasReplaced) to.clear(parent, name);
  const directory = hasReplaced ? to.make(parent, name) : directoryAt(path, fail);
  if (mode !== undefined || mtime !== undefined) to.materialize(directory);
  if (mode !== undefined) setOwnerAndModeAt(directory.path, { uid, gid }, { mode });
  else if (existing === undefined) chownSync(directory.path, uid, gid);
  return { path: directory.path, hasReplaced };
}

/** Makes a link or a special file. */
function placeOther(
  to: UpperTree,
  directoryAt: DirectoryMaker,
  entry: Exclude<PlacedEntry, { type: "directory" }>,
): PlacedPath {
  const { path, uid, gid, replaces } = entry;
  const what = `cannot make the ${entry.type === "symlink" ? "link" : entry.kind} ${path}`;
  const parent = directoryAt(
    dirname(path),
    (inside) => new BoughError(`${what}: ${inside} in the image is not a directory`),
  );
  const name = basename(path);
  const existing = to.find(parent, name);
  if (existing?.stats.isDirectory() && replaces !== true)
    throw new BoughError(`${what}: there is a directory in the image`);
  const place = to.clear(parent, name);
  if (entry.type === "symlink") {
    symlinkSync(entry.target, place);
    lchownSync(place, uid, gid);
  } else {
    if (!makeSpecial(place, entry))
      throw new BoughError(`${what}: devices cannot be made here`, { hint: "Only root can make devices." });
    setOwnerAndModeAt(place, { uid, gid }, entry);
  }
  return { path: place, hasReplaced: existing !== undefined };
}

function makeSpecial(path: Path, entry: PlacedEntry & { type: "special" }): boolean {
  if (entry.kind === "pipe") return makeNode(path, constants.S_IFIFO, 0);
  const type = entry.kind === "block-device" ? constants.S_IFBLK : constants.S_IFCHR;
  return makeNode(path, type, deviceNumber(entry.major, entry.minor) ?? 0);
}
