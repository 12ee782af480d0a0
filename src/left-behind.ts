/** Names temporary files after their process, so that other processes can remove them after its end. */
import { chmodSync, lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bootId, currentProcess, isAlive } from "./process-identity.ts";

/** Returns a new unique name for a file of this process. */
export function ownName(): string {
  return `${processTable()}_${currentProcess()}_${crypto.randomUUID()}`;
}

/** Removes files of dead processes, named `prefix` and `ownName()`. Files of unknown processes go after a day. */
export function removeAbandoned(directory: string, prefix: RegExp): void {
  for (const name of namesIn(directory))
    if (prefix.test(name) && isAbandoned(join(directory, name), name.replace(prefix, ""), { isToGo: true }))
      removeTree(join(directory, name));
}

/** True if a file in the directory is named after a process that may be alive. The file `own` does not count. */
export function hasLivingOwner(directory: string, own?: string): boolean {
  return namesIn(directory).some(
    (name) => name !== own && !isAbandoned(join(directory, name), name, { isToGo: false }),
  );
}

/** Removes a tree as far as possible, without errors. Makes directories accessible that are closed to their owner. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    makeAccessible(path);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next process tries again.
    }
  }
}

/** Returns the names in a directory; none if it can't be read, which is reported when something is written there. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

const named = /^(?:(?:(\d+)_)?([^_]+)_)?[0-9a-f]{8}-[0-9a-f-]{27}$/;
/** Older files of processes on other machines are removed, even if the process may be alive. */
const keptMilliseconds = 24 * 60 * 60 * 1000;

/** True for a file of a dead process. `isToGo`: only if it is this user's, since other users can't put a link into that. */
function isAbandoned(path: string, name: string, { isToGo }: { isToGo: boolean }): boolean {
  const [isNamed, table, owner = ""] = named.exec(name) ?? [];
  if (isNamed === undefined) return false;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return true;
  if (isToGo && process.getuid !== undefined && stats.uid !== process.getuid()) return false;
  const isKnown = table === processTable() && owner.startsWith(bootId() ?? "");
  if (isKnown) return owner !== currentProcess() && !isAlive(owner);
  return stats.mtimeMs < Date.now() - keptMilliseconds;
}

/** Returns the ID of the process table. Processes of another container that shares a directory can't be seen. */
function processTable(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}

function makeAccessible(directory: string): void {
  try {
    chmodSync(directory, 0o700);
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) makeAccessible(join(directory, entry.name));
  } catch {
    // It belongs to another user, and stays.
  }
}
