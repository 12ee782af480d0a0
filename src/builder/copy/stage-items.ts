import { posix } from "node:path";
import { directoryMode, type ModeChange } from "../../image/file-mode.ts";
import { createPace } from "../../pace.ts";
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
import type { Destination } from "./destination.ts";

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

/** What directories get that have to be made. */
export interface MadeDirectories {
  owner: Owner;
  line: number;
  /** `undefined`: the usual one. */
  directoryMode?: number | undefined;
}

/** Stages items and the directories above them. Those that have to be made belong to `owner` and have `directoryMode`, if given. */
export async function stageItems(
  items: Iterable<Item>,
  destination: Destination,
  { owner, line, directoryMode: mode }: MadeDirectories,
  stage: StageState,
  services: BuildServices,
): Promise<StagedItems> {
  const { staged } = stage;
  const isDirectoryInImage = (path: string) => services.facts.isDirectory(stage.layer.image, path);
  const place = destination.isDirectory ? destination.path : posix.dirname(destination.path);
  /** True if `place` exists; asked for on demand. */
  let isIntoExisting: boolean | undefined;
  /** Paths of directory sources: Docker copies their contents, not themselves. */
  const roots: string[] = [];
  const implied: string[] = [];
  const rootTimes = new Map<string, number>();
  const found: [string, StagedEntry][] = [];
  const amount = { files: 0, bytes: 0 };
  const pace = createPace(services.signal);
  for (const item of items) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { path } = item;
    let { entry } = item;
    if (entry === undefined) {
      (item.isImplied ? implied : roots).push(path);
      if (item.mtime !== undefined) rootTimes.set(path, item.mtime);
      continue;
    }
    if (entry.type === "directory") {
      isIntoExisting ??= await isDirectoryInImage(place);
      // An existing one may have another mode and owner.
      if (
        !entry.isExplicit &&
        (staged.has(path) || (isIntoExisting && (await isDirectoryInImage(nextBelow(place, path)))))
      )
        entry = { ...entry, isExplicit: true };
    }
    found.push([path, entry]);
    if (entry.type !== "file") continue;
    amount.files += 1;
    amount.bytes += entry.size;
  }
  if (!isRoot(owner) && found.length + roots.length > 0) isIntoExisting ??= await isDirectoryInImage(place);
  // Collected before more is allocated.
  collectGarbage(amount.files);
  const made = directoriesToMake(roots, found, owner).filter(
    (path) => !(isIntoExisting === true && isSameOrAbove(path, place)),
  );
  const addition = beginAddition(staged);
  const unknown = implied.filter((path) => !staged.has(path));
  for (const [path, entry] of stageDirectories(unknown, root, line, stage)) addition.add(path, entry);
  const ends = new Set(roots);
  for (const [path, entry] of stageDirectories(made, owner, line, stage))
    addition.add(path, ends.has(path) ? entry : { ...entry, isOnTheWay: true });
  const isModeGiven = mode !== undefined && mode !== directoryMode && found.length + roots.length > 0;
  if (isModeGiven && (await services.supports.fileLayers()))
    for (const path of await missingAmong([...parentDirectories(place), place, ...roots], stage, services))
      addition.add(path, { type: "directory", mode, isExplicit: true, ...owner, line });
  if (rootTimes.size > 0 && (await services.supports.fileFeatures()).attributes)
    for (const [path, entry] of stageDirectories(rootTimes.keys(), root, line, stage))
      addition.add(path, { ...entry, mtime: rootTimes.get(path) });
  for (const [path, entry] of found) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    addition.add(path, entry);
  }
  return { staged: addition.end(), ...amount };
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
  { facts }: BuildServices,
): Promise<Set<string>> {
  const missing = new Set<string>();
  for (const path of paths) {
    const isBelowMissing = missing.has(posix.dirname(path));
    if (staged.has(path) || path === "/") continue;
    if (isBelowMissing || !(await facts.isDirectory(layer.image, path))) missing.add(path);
  }
  return missing;
}

/** Parents that belong to root are left out: the service makes them. */
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
