import type { Database } from "bun:sqlite";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import { currentProcess, isAlive } from "../../process-identity.ts";
import type { Layout } from "../layout.ts";

/** Who may have a cache at the same time: whoever shares it, or one command. `locked` waits, `private` takes another one. */
export type Sharing = "shared" | "private" | "locked";

/**
 * Takes a cache of `key` for an operation: one that others share, or one that nobody has, or a new one. Returns its name;
 * `undefined` where the operation has to wait.
 */
export function takeCache(
  database: Database,
  { key, sharing, operation, now }: { key: string; sharing: Sharing; operation: string; now: number },
): string | undefined {
  return inTransaction(database, () => {
    forgetDeadUses(database);
    const caches = database
      .query<{ name: string; sharing: Sharing | null }, [string]>(
        // A cache has one kind of users.
        `SELECT name, (SELECT sharing FROM cache_uses WHERE cache = name LIMIT 1) AS sharing
         FROM caches WHERE key = ? ORDER BY created_at, rowid`,
      )
      .all(key);
    const shared = caches.find((cache) => sharing === "shared" && cache.sharing === "shared");
    const free = shared ?? caches.find((cache) => cache.sharing === null);
    if (free === undefined && sharing === "locked" && caches.length > 0) return undefined;
    const name = free?.name ?? addCache(database, key, now);
    database
      .query<undefined, [number, string]>("UPDATE caches SET used_at = ? WHERE name = ?")
      .run(now, name);
    database
      .query<undefined, [string, string, string, string]>(
        "INSERT INTO cache_uses (cache, operation, owner, sharing) VALUES (?, ?, ?, ?)",
      )
      .run(name, operation, currentProcess(), sharing);
    return name;
  });
}

function addCache(database: Database, key: string, now: number): string {
  const name = `${key}.${crypto.randomUUID().slice(0, 8)}`;
  database
    .query<undefined, [string, string, number]>("INSERT INTO caches (name, key, created_at) VALUES (?, ?, ?)")
    .run(name, key, now);
  return name;
}

/** An operation's caches are others' to take. */
export function releaseCaches(database: Database, operation: string): void {
  database.query<undefined, [string]>("DELETE FROM cache_uses WHERE operation = ?").run(operation);
}

/** Takes back a cache that could not be filled, unless another operation is about to. */
export function forgetCache(database: Database, name: string, operation: string): void {
  database
    .query<undefined, [string, string]>(
      "DELETE FROM caches WHERE name = ? AND NOT EXISTS (SELECT 1 FROM cache_uses WHERE cache = name AND operation != ?)",
    )
    .run(name, operation);
}

/** Uses of processes that were killed. Call it inside a transaction. */
function forgetDeadUses(database: Database): void {
  const owners = database.query<{ owner: string }, []>("SELECT DISTINCT owner FROM cache_uses").all();
  const forget = database.query<undefined, [string]>("DELETE FROM cache_uses WHERE owner = ?");
  for (const { owner } of owners) if (!isAlive(owner)) forget.run(owner);
}

/** Names of files and directories: a record that somebody has edited leads nowhere else. */
function isCacheName(name: string): boolean {
  return /^[0-9a-f]{64}\.[0-9a-f]{8}$/.test(name);
}

export function cacheDirectory(layout: Layout, name: string): string {
  if (!isCacheName(name)) throw new Error(`the record of a cache has the name ${JSON.stringify(name)}`);
  return join(layout.caches, name);
}

/** Puts what a new cache begins with in its place, unless another process was first. */
export function placeCache(database: Database, layout: Layout, name: string, directory: string): void {
  inTransaction(database, () => {
    const place = cacheDirectory(layout, name);
    if (!existsSync(place)) renameSync(directory, place);
  });
}

/** Paths of all caches. */
export function cachePaths(database: Database, layout: Layout): string[] {
  return cacheNames(database).map((name) => cacheDirectory(layout, name));
}

/** The caches that no command has at the moment, and when one had. Call it inside a transaction to remove them. */
export function cachesByUse(database: Database): { name: string; usedAt: number }[] {
  const uses = database
    .query<{ cache: string; owner: string }, []>("SELECT cache, owner FROM cache_uses")
    .all();
  const used = new Set(uses.filter(({ owner }) => isAlive(owner)).map(({ cache }) => cache));
  return database
    .query<{ name: string; usedAt: number }, []>(
      "SELECT name, ifnull(used_at, created_at) AS usedAt FROM caches",
    )
    .all()
    .filter(({ name }) => isCacheName(name) && !used.has(name));
}

function cacheNames(database: Database): string[] {
  return database
    .query<{ name: string }, []>("SELECT name FROM caches")
    .all()
    .map(({ name }) => name)
    .filter(isCacheName);
}
