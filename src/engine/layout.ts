import { chmodSync, lstatSync, mkdirSync, realpathSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";
import { currentProcess } from "../process-identity.ts";

/** Where things are in an engine's directory. All paths are absolute, and but for `directory` without links. */
export interface Layout {
  directory: string;
  database: string;
  /** `<layer name>/`: one overlay directory a layer. The working directory of every mount, so that names stay short. */
  layers: string;
  /** `<layer name>/`: the files that an imported layer's content came in. */
  blobs: string;
  /** `<first two digits>/<sha256>`: uploaded contents. */
  files: string;
  /** `<operation>/`: what an operation that is under way has on disk. */
  operations: string;
  /** `<operation>.ndjson`: event logs. */
  events: string;
  /** `<name>/`: what mounts of type cache keep between commands; see `records/caches.ts`. */
  caches: string;
  /** One directory a container: runc's own state, or a note that there are control groups. */
  containers: string;
  /** What came of trying crun. */
  runtimeTrial: string;
  /** `<process>.<id>/`: what each open engine is writing or deleting. */
  scratches: string;
  /** This engine's own part of `scratches`; it ends with the engine. */
  scratch: string;
  /** Always empty: each operation mounts its root file system here, in a mount namespace that nobody else sees. */
  root: string;
  /** The lowest layer of every sandbox: mount points for images that lack them, so that none is made in a layer. */
  skeleton: string;
  /** Always empty: the second layer that an overlay without an upper directory asks for. */
  empty: string;
}

/** Names the parts of an engine directory and makes those that are missing (0700). */
export function makeLayout(directory: string): Layout {
  requireOwnDirectory(directory, { isLinkable: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // runc takes no path with a link in it.
  const real = realpathSync(directory);
  const layout: Layout = {
    directory,
    database: join(real, "engine.db"),
    layers: join(real, "layers"),
    blobs: join(real, "blobs"),
    files: join(real, "files"),
    operations: join(real, "operations"),
    events: join(real, "events"),
    caches: join(real, "caches"),
    containers: join(real, "containers"),
    runtimeTrial: join(real, "runtime.json"),
    scratches: join(real, "scratch"),
    scratch: join(real, "scratch", `${currentProcess()}.${crypto.randomUUID()}`),
    root: join(real, "root"),
    skeleton: join(real, "skeleton"),
    empty: join(real, "empty"),
  };
  const { directory: _, database, runtimeTrial: __, ...folders } = layout;
  for (const name of ["", "-wal", "-shm"]) requireOwnFile(`${database}${name}`);
  for (const folder of Object.values(folders)) {
    if (!requireOwnDirectory(folder, { isLinkable: false }))
      mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  makeSkeleton(layout.skeleton);
  return layout;
}

function makeSkeleton(skeleton: string): void {
  const makeDirectory = (path: string) => void mkdirSync(path, { recursive: true });
  const makeFile = (path: string) => writeFileSync(path, "", { flag: "a" });
  const isEmptyFile = (stats: Stats) => stats.isFile() && stats.size === 0;
  for (const name of ["", "dev", "etc", "proc", "sys"])
    makeUnlessThere(join(skeleton, name), 0o755, (stats) => stats.isDirectory(), makeDirectory);
  for (const name of ["etc/hosts", "etc/resolv.conf"])
    makeUnlessThere(join(skeleton, name), 0o644, isEmptyFile, makeFile);
}

/** What is not as it was made is cleared away first: a link here would be followed. */
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
