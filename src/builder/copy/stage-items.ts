import { posix } from "node:path";
import { directoryMode, type ModeChange } from "../../image/file-mode.ts";
import { once } from "../../once.ts";
import { createPace, type Pace } from "../../pace.ts";
import type { CopiedEntry } from "../../store/copies.ts";
import type { BuildServices } from "../job.ts";
import { collectGarbage } from "../operations/gc.ts";
import { isRoot, type Owner, root } from "../owners/ownership.ts";
import { isSameOrAbove, parentDirectories } from "../state/path-in-image.ts";
import {
  beginAddition,
  type GivenOwner,
  isStagedBelow,
  type Staged,
  type StagedContent,
  type StagedDirectory,
  type StagedEntry,
} from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import type { CopyDestination } from "./destination.ts";

/** An entry for a path in the image. An `undefined` entry is a source directory, which only has to exist. */
export interface Item {
  path: string;
  entry: StagedEntry | undefined;
  /** True for a directory that exists only for its contents. If it has to be made, it is root's. */
  isImplied?: true;
  /** The time of a source directory, if known: seconds since the epoch. */
  mtime?: number | undefined;
}

/** The stage's entries after an addition, and the amount of the files that were added. */
export interface StagedItems {
  staged: Staged;
  files: number;
  bytes: number;
}

/** The owner, line and mode of directories that have to be made. */
interface MadeDirectories {
  owner: Owner;
  line: number;
  /** `undefined`: the default mode. */
  directoryMode?: number | undefined;
}

/** Stages items and the directories above them. Those that have to be made belong to `owner` and have `directoryMode`, if given. */
export async function stageItems(
  items: Iterable<Item>,
  destination: CopyDestination,
  made: MadeDirectories,
  stage: StageState,
  services: BuildServices,
): Promise<StagedItems> {
  const { owner } = made;
  const pace = createPace(services.signal);
  const place = destination.isDirectory ? destination.path : posix.dirname(destination.path);
  const isDirectoryInImage = (path: string) => services.inspection.isDirectory(stage.layer.image, path);
  /** Looked up on demand. */
  const isIntoExisting = once(() => isDirectoryInImage(place));
  const isThere = async (path: string) =>
    stage.staged.has(path) ||
    ((await isIntoExisting()) && (await isDirectoryInImage(nextBelow(place, path))));
  const read = await readItems(items, isThere, pace);
  const { roots, found } = read;
  const isNeeded = read.hasDirectories || (!isRoot(owner) && found.length + roots.length > 0);
  const mayBeThere = isNeeded && (await isIntoExisting());
  // Collected before more is allocated.
  collectGarbage(read.amount.files);
  const missing = directoriesToMake(roots, found, owner).filter(
    (path) => !(mayBeThere && isSameOrAbove(path, place)),
  );
  const addition = beginAddition(stage.staged);
  await addDirectories(addition, read, { missing, place }, made, stage, services);
  for (const [path, entry] of found) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    addition.add(path, entry);
  }
  return { staged: addition.end(), ...read.amount };
}

interface ReadItems {
  found: [string, StagedEntry][];
  /** Paths of directory sources: Docker copies their contents, not themselves. */
  roots: string[];
  /** Their times, where they count. */
  rootTimes: Map<string, number>;
  /** Directories above a source whose parents are copied. */
  implied: string[];
  hasDirectories: boolean;
  amount: { files: number; bytes: number };
}

/** `isThere`: a directory that exists may have another mode and owner, so that those of a source have to be set. */
async function readItems(
  items: Iterable<Item>,
  isThere: (path: string) => Promise<boolean>,
  pace: Pace,
): Promise<ReadItems> {
  const read: ReadItems = {
    ...{ found: [], roots: [], rootTimes: new Map(), implied: [], hasDirectories: false },
    amount: { files: 0, bytes: 0 },
  };
  for (const { path, entry, isImplied, mtime } of items) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    if (entry === undefined) {
      (isImplied ? read.implied : read.roots).push(path);
      if (mtime !== undefined) read.rootTimes.set(path, mtime);
      continue;
    }
    if (entry.type === "directory") {
      read.hasDirectories = true;
      const isGiven = !entry.isExplicit && (await isThere(path));
      read.found.push([path, isGiven ? { ...entry, isExplicit: true } : entry]);
      continue;
    }
    read.found.push([path, entry]);
    if (entry.type !== "file") continue;
    read.amount.files += 1;
    read.amount.bytes += entry.size;
  }
  return read;
}

async function addDirectories(
  addition: ReturnType<typeof beginAddition>,
  { found, roots, rootTimes, implied }: ReadItems,
  { missing, place }: { missing: readonly string[]; place: string },
  { owner, line, directoryMode: mode }: MadeDirectories,
  stage: StageState,
  services: BuildServices,
): Promise<void> {
  const unknown = implied.filter((path) => !stage.staged.has(path));
  for (const [path, entry] of stageDirectories(unknown, root, line, stage)) addition.add(path, entry);
  const ends = new Set(roots);
  for (const [path, entry] of stageDirectories(missing, owner, line, stage))
    addition.add(path, ends.has(path) ? entry : { ...entry, isParentOnly: true });
  const isModeGiven = mode !== undefined && mode !== directoryMode && found.length + roots.length > 0;
  if (isModeGiven && (await services.supports.fileLayers()))
    for (const path of await missingAmong([...parentDirectories(place), place, ...roots], stage, services))
      addition.add(path, { type: "directory", mode, isExplicit: true, ...owner, line });
  if (rootTimes.size > 0 && (await services.supports.fileFeatures()).attributes)
    for (const [path, entry] of stageDirectories(rootTimes.keys(), root, line, stage))
      addition.add(path, { ...entry, mtime: rootTimes.get(path) });
}

/** Returns the staged form of an entry of an image, an archive or a repository. */
export function stageCopied(
  entry: CopiedEntry,
  content: StagedContent,
  change: ModeChange,
  owned: GivenOwner,
): StagedEntry {
  const { mtime, attributes } = entry;
  const common = {
    ...owned,
    ...(mtime !== undefined && { mtime }),
    ...(attributes !== undefined && { attributes }),
  };
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, ...common };
    case "directory":
      return { ...stageDirectory(change(entry.mode, true), owned), ...common };
    case "file": {
      const { sha256, size } = entry;
      return { type: "file", sha256, size, mode: change(entry.mode, false), content, ...common };
    }
    case "special": {
      const { kind } = entry;
      const special = { type: "special", mode: change(entry.mode, false), ...common } as const;
      return kind === "pipe"
        ? { ...special, kind }
        : { ...special, kind, major: entry.major, minor: entry.minor };
    }
  }
}

/** Returns the directories that neither the image nor an earlier instruction has. `paths`: parents come before their directories. */
async function missingAmong(
  paths: readonly string[],
  { layer, staged }: StageState,
  { inspection }: BuildServices,
): Promise<Set<string>> {
  const missing = new Set<string>();
  for (const path of paths) {
    const isBelowMissing = missing.has(posix.dirname(path));
    if (staged.has(path) || path === "/") continue;
    if (isBelowMissing || !(await inspection.isDirectory(layer.image, path))) missing.add(path);
  }
  return missing;
}

/** Returns the directories to stage. Parents that belong to root are left out: the service makes them. */
function directoriesToMake(
  roots: readonly string[],
  found: readonly (readonly [string, StagedEntry])[],
  owner: Owner,
): string[] {
  if (isRoot(owner)) return [...roots];
  return [
    ...roots.flatMap((path) => [...parentDirectories(path), path]),
    ...found.flatMap(([path]) => parentDirectories(path)),
  ];
}

/** Returns the directory right below `place` on the way to `path`: if the image lacks it, it lacks `path`, too. */
function nextBelow(place: string, path: string): string {
  const [top = ""] = posix.relative(place, path).split("/");
  return posix.join(place, top);
}

/**
 * Stages directories that have to exist: the WORKDIR and the parents of a destination. Those that the image lacks belong to
 * `owner` (BuildKit gives them the `--chown` of the COPY, or the USER of the WORKDIR), unless an earlier instruction has made
 * them: then they are root's.
 */
export function stageDirectories(
  paths: Iterable<string>,
  owner: Owner,
  line: number,
  stage: StageState,
): [string, StagedDirectory][] {
  return [...new Set(paths)].map((path) => [
    path,
    {
      type: "directory",
      mode: directoryMode,
      isExplicit: false,
      ...(isMadeBefore(path, stage) ? root : owner),
      line,
    },
  ]);
}

/** Stages a directory of a copy. It is explicit if its mode or owner differs from that of a directory that only has to exist. */
export function stageDirectory(mode: number, owned: GivenOwner): StagedDirectory {
  const isExplicit = mode !== directoryMode || !isRoot(owned);
  const { uid, gid, line, names } = owned;
  const directory: StagedDirectory = { type: "directory", mode, isExplicit, uid, gid, line };
  return names === undefined ? directory : { ...directory, names };
}

function isMadeBefore(path: string, { staged, config, workdirIsPending }: StageState): boolean {
  return (workdirIsPending && isSameOrAbove(path, config.WorkingDir)) || isStagedBelow(staged, path);
}
