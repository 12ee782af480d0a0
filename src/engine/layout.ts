import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { currentProcess } from "./system/processes.ts";

/** Where things are in an engine's directory. All paths are absolute. */
export interface Layout {
  directory: string;
  database: string;
  /** `<layer name>/`: one overlay directory a layer. The working directory of every mount, so that names stay short. */
  layers: string;
  /** `<first two digits>/<sha256>`: uploaded contents. */
  files: string;
  /** `<operation>/`: what an operation that is under way has on disk. */
  operations: string;
  /** `<operation>.ndjson`: event logs. */
  events: string;
  /** runc's own state, one directory a container. */
  containers: string;
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
  const layout: Layout = {
    directory,
    database: join(directory, "engine.db"),
    layers: join(directory, "layers"),
    files: join(directory, "files"),
    operations: join(directory, "operations"),
    events: join(directory, "events"),
    containers: join(directory, "containers"),
    scratches: join(directory, "scratch"),
    scratch: join(directory, "scratch", `${currentProcess()}.${crypto.randomUUID()}`),
    root: join(directory, "root"),
    skeleton: join(directory, "skeleton"),
    empty: join(directory, "empty"),
  };
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { directory: _, database: __, ...folders } = layout;
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  makeSkeleton(layout.skeleton);
  return layout;
}

function makeSkeleton(skeleton: string): void {
  chmodSync(skeleton, 0o755);
  for (const name of ["dev", "etc", "proc", "sys"]) {
    mkdirSync(join(skeleton, name), { recursive: true });
    chmodSync(join(skeleton, name), 0o755);
  }
  for (const name of ["etc/hosts", "etc/resolv.conf"]) {
    writeFileSync(join(skeleton, name), "", { flag: "a" });
    chmodSync(join(skeleton, name), 0o644);
  }
}
