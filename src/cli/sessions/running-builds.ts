import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { BuildProcess } from "../../builder/job.ts";
import { isLocked, lockFile, takeOverLock } from "../../lock-file.ts";
import { requireOwnDirectory } from "../../own-path.ts";
import { listNames } from "../../remove-tree.ts";
import { sha256Of } from "../../sha256.ts";

/** The name of the directory, in bough's own, that contains a lock file for each running build. */
const directoryName = "running-builds";

/** Registers a running build, until the result is disposed of or this process ends. `home`: bough's own directory. */
export function registerBuild(home: string, session: string): BuildProcess & Disposable {
  const directory = join(home, directoryName);
  requireOwnDirectory(directory, { isLinkable: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of listNames(directory)) takeOverLock(join(directory, name))?.[Symbol.dispose]();
  const id = `${prefixOf(session)}${crypto.randomUUID()}`;
  const lock = lockFile(join(directory, id));
  return {
    id,
    isAlive: (owner) => isRunning(home, owner),
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  };
}

/** True while the process of a build is alive. `owner`: the `id` that `registerBuild` has returned. */
export function isRunning(home: string, owner: string): boolean {
  return /^[\w.-]+$/.test(owner) && isLocked(join(home, directoryName, owner));
}

/** The running builds of all services and projects. */
interface RunningBuilds {
  /** Milliseconds since the epoch when the first of them began; `undefined` if no build is running. */
  since: number | undefined;
  isBuilding(session: string): boolean;
}

export function findRunningBuilds(home: string): RunningBuilds {
  const directory = join(home, directoryName);
  const names = listNames(directory).filter((name) => isLocked(join(directory, name)));
  const starts = names.flatMap(
    (name) => statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs ?? [],
  );
  return {
    since: starts.length === 0 ? undefined : Math.min(...starts),
    isBuilding: (session) => names.some((name) => name.startsWith(prefixOf(session))),
  };
}

function prefixOf(session: string): string {
  return `${sha256Of(session).slice(0, 16)}.`;
}
