/** What a process keeps on disk for as long as it lives is named for it: others can tell when nobody needs it any more. */
import { chmodSync, lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bootId, currentProcess, isAlive } from "./process-identity.ts";

/** Names one use by this process. */
export function ownName(): string {
  return `${processTable()}_${currentProcess()}_${crypto.randomUUID()}`;
}

/** Removes what dead processes have left under a name of theirs behind `prefix`, and what could be theirs and is a day old. */
export function removeAbandoned(directory: string, prefix: RegExp): void {
  for (const name of namesIn(directory))
    if (prefix.test(name) && isAbandoned(join(directory, name), name.replace(prefix, ""), { isToGo: true }))
      removeTree(join(directory, name));
}

/** Returns whether a process that has its name in the directory lives, for all that can be seen. `own` counts for none. */
export function hasLivingOwner(directory: string, own?: string): boolean {
  return namesIn(directory).some(
    (name) => name !== own && !isAbandoned(join(directory, name), name, { isToGo: false }),
  );
}

/** Removes what can be removed: what can't is no reason to fail. Directories may be closed to their owner. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    makeAccessible(path);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next one to come by tries again.
    }
  }
}

/** Returns the names in a directory; none where it can't be read, which whoever is to write there says. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

const named = /^(?:(?:(\d+)_)?([^_]+)_)?[0-9a-f]{8}-[0-9a-f-]{27}$/;
/** What a process on another machine has left longer ago is of no use, whether or not that process lives. */
const keptMilliseconds = 24 * 60 * 60 * 1000;

/** `isToGo`: only what is this user's goes, as nobody else can put a link into that. */
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

/** Tells containers apart that share a directory: whether a process of another one lives can't be seen. */
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
    // It is somebody else's, and stays.
  }
}
