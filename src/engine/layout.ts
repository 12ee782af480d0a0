import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { directoryMode } from "../image/file-mode.ts";
import { bootId, isLocked, lockFile } from "../lock-file.ts";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";

/** The paths in an engine's directory. All are absolute, and all but `directory` are free of symbolic links. */
export interface Layout {
  /** The path as the user names it. */
  directory: string;
  realDirectory: string;
  database: string;
  /** `<layer name>/`: one overlay directory per layer. Every mount has this as its working directory, to keep names short. */
  layers: string;
  /** `<layer name>/`: the listing of an absent layer; see `records/layer-listings.ts`. */
  listings: string;
  /** `<layer name>/`: the blobs of an imported layer, or what they are made of again; see `records/imported-blobs.ts`. */
  blobs: string;
  /** `<first two digits>/<sha256>`: uploaded contents. */
  files: string;
  /** `<operation>/`: the files of a running operation. */
  operations: string;
  /** `<operation>.ndjson`: event logs. */
  events: string;
  /** `<name>/`: the contents of cache mounts, kept between commands; see `records/caches.ts`. */
  caches: string;
  /** One directory per container: runc's state, or a note that control groups exist. */
  containers: string;
  /** The result of trying crun. */
  runtimeTrial: string;
  /** `<owner>`: a lock file of each open engine. */
  locks: string;
  /** The name under which this engine records what belongs to it: the boot ID, and an ID of its own. */
  owner: string;
  /** The lock on the file with the owner's name in `locks`, held until the engine closes. */
  lock: Disposable;
  /** `<owner>/`: the files that each open engine is writing or deleting. */
  scratches: string;
  /** This engine's directory in `scratches`; removed when the engine closes. */
  scratch: string;
  /** Always empty: each operation mounts its root file system here, in its own mount namespace. */
  root: string;
  /** The lowest layer of every sandbox: mount points that an image may lack, so that none is made in a layer. */
  skeleton: string;
  /** Always empty: the second layer, which an overlay without an upper directory requires. */
  empty: string;
}

/** Returns the paths in an engine directory, and makes the missing directories (0700). */
export function makeLayout(directory: string): Layout {
  requireOwnDirectory(directory, { isLinkable: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // runc accepts no path with a symbolic link in it.
  const real = realpathSync(directory);
  const owner = `${bootId() ?? "boot"}.${crypto.randomUUID()}`;
  const folders = {
    layers: join(real, "layers"),
    listings: join(real, "listings"),
    blobs: join(real, "blobs"),
    files: join(real, "files"),
    operations: join(real, "operations"),
    events: join(real, "events"),
    caches: join(real, "caches"),
    containers: join(real, "containers"),
    locks: join(real, "locks"),
    scratches: join(real, "scratch"),
    root: join(real, "root"),
    skeleton: join(real, "skeleton"),
    empty: join(real, "empty"),
  };
  const database = join(real, "engine.db");
  for (const name of ["", "-wal", "-shm"]) requireOwnFile(`${database}${name}`);
  for (const folder of Object.values(folders)) {
    if (!requireOwnDirectory(folder, { isLinkable: false }))
      mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  makeSkeleton(folders.skeleton);
  const lock = lockFile(join(folders.locks, owner));
  const scratch = join(folders.scratches, owner);
  // The lock comes first: without it, another engine would remove the directory.
  mkdirSync(scratch, { mode: 0o700 });
  const files = { database, runtimeTrial: join(real, "runtime.json") };
  return { directory, realDirectory: real, ...files, ...folders, owner, lock, scratch };
}

/** Removes the engine's own files. A later engine removes what can't be removed now. */
export async function closeLayout({ scratch, lock }: Pick<Layout, "scratch" | "lock">): Promise<void> {
  try {
    // It is nearly always empty, and removing it in another thread would take longer.
    rmdirSync(scratch);
  } catch {
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
  lock[Symbol.dispose]();
}

/** Returns true if the engine of this name is open: it has not been closed, and its process is alive. */
export function isOpen(layout: Pick<Layout, "locks" | "owner">, owner: string): boolean {
  // A name from an edited record must not lead elsewhere.
  return owner === layout.owner || (/^[\w-]+\.[\w-]+$/.test(owner) && isLocked(join(layout.locks, owner)));
}

/** Returns true if another engine has the same directory open. */
export function hasOtherEngine(layout: Pick<Layout, "locks" | "owner">): boolean {
  return readdirSync(layout.locks).some((owner) => owner !== layout.owner && isOpen(layout, owner));
}

/** Moves a file or directory into the scratch directory, from which it can be removed slowly. Returns its new path. */
export function moveToScratch(layout: Layout, path: string): string {
  const place = join(layout.scratch, crypto.randomUUID());
  renameSync(path, place);
  return place;
}

function makeSkeleton(skeleton: string): void {
  const makeDirectory = (path: string) => void mkdirSync(path, { recursive: true });
  const makeFile = (path: string) => writeFileSync(path, "", { flag: "a" });
  const isEmptyFile = (stats: Stats) => stats.isFile() && stats.size === 0;
  for (const name of ["", "dev", "etc", "proc", "sys"])
    makeUnlessThere(join(skeleton, name), directoryMode, (stats) => stats.isDirectory(), makeDirectory);
  for (const name of ["etc/hosts", "etc/resolv.conf"])
    makeUnlessThere(join(skeleton, name), 0o644, isEmptyFile, makeFile);
}

/** Makes a mount point. Removes anything of another type first: a link here would be followed. */
function makeUnlessThere(
  path: string,
  mode: number,
  isAsMade: (stats: Stats) => boolean,
  make: (path: string) => void,
): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && isAsMade(stats) && (stats.mode & 0o7777) === mode) return;
  if (stats !== undefined && !isAsMade(stats)) rmSync(path, { recursive: true });
  make(path);
  chmodSync(path, mode);
}
