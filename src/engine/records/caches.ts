import type { Database } from "bun:sqlite";
import { existsSync, readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import { isOpen, type Layout } from "../layout.ts";
import type { Records } from "./records.ts";

/** The `sharing` of a cache mount: `shared` allows several commands at once, `locked` waits, `private` takes another cache. */
export type Sharing = "shared" | "private" | "locked";

/** An operation's request for a cache. */
interface CacheRequest {
  key: string;
  sharing: Sharing;
  /** Only a cache that was made for this generation is used; any one if it is `undefined`. */
  generation?: string | undefined;
  operation: string;
  now: number;
}

/**
 * Takes a cache of `key` for an operation: a shared one, a free one (preferably the newest that was made for a generation), or a new
 * one. Returns its name, or `undefined` if the operation has to wait.
 */
export function takeCache(records: Records, request: CacheRequest): string | undefined {
  const { database } = records;
  const { key, sharing, generation, operation, now } = request;
  return inTransaction(database, () => {
    forgetDeadUses(records, now);
    const caches = database
      .query<{ name: string; sharing: Sharing | null }, [string, string | null]>(
        // All uses of a cache have the same sharing.
        `SELECT name, (SELECT sharing FROM cache_uses WHERE cache = name LIMIT 1) AS sharing
         FROM caches WHERE key = ?1 AND (?2 IS NULL OR generation = ?2)
         ORDER BY generation IS NULL, iif(generation IS NULL, created_at, -created_at), rowid`,
      )
      .all(key, generation ?? null);
    const shared = caches.find((cache) => sharing === "shared" && cache.sharing === "shared");
    const free = shared ?? caches.find((cache) => cache.sharing === null);
    if (free === undefined && sharing === "locked" && caches.length > 0) return undefined;
    const name = free?.name ?? addCache(database, request);
    database
      .query<undefined, [number, string]>("UPDATE caches SET used_at = ? WHERE name = ?")
      .run(now, name);
    addUse(records, name, operation, sharing);
    return name;
  });
}

/**
 * Takes the cache of `key` that was used last, to read it: no operation writes to it until `releaseCaches`. Returns "busy" if
 * commands are using all of them.
 */
export function takeCacheForReading(
  records: Records,
  { key, operation, now }: { key: string; operation: string; now: number },
): { name: string } | "absent" | "busy" {
  const { database } = records;
  return inTransaction(database, () => {
    forgetDeadUses(records, now);
    const caches = database
      .query<{ name: string; isUsed: number }, [string]>(
        `SELECT name, EXISTS (SELECT 1 FROM cache_uses WHERE cache = name) AS isUsed
         FROM caches WHERE key = ? ORDER BY ifnull(used_at, created_at) DESC, rowid DESC`,
      )
      .all(key);
    if (caches.length === 0) return "absent";
    const free = caches.find(({ isUsed }) => isUsed === 0);
    if (free === undefined) return "busy";
    addUse(records, free.name, operation, "locked");
    return { name: free.name };
  });
}

function addCache(database: Database, { key, generation, now }: CacheRequest): string {
  if (generation !== undefined) discardOldCaches(database, key);
  const name = `${key}.${crypto.randomUUID().slice(0, 8)}`;
  database
    .query<undefined, [string, string, number, string | null]>(
      "INSERT INTO caches (name, key, created_at, generation) VALUES (?, ?, ?, ?)",
    )
    .run(name, key, now, generation ?? null);
  return name;
}

/** The number of free caches of one key that stay when a build makes its own one. Two such builds may run at once. */
const maxOldCaches = 2;

function discardOldCaches(database: Database, key: string): void {
  database
    .query<undefined, [string, string, number]>(
      `UPDATE caches SET key = ? WHERE name IN (
         SELECT name FROM caches WHERE key = ? AND name NOT IN (SELECT cache FROM cache_uses)
         ORDER BY ifnull(used_at, created_at) DESC, rowid DESC LIMIT -1 OFFSET ?)`,
    )
    .run(lostKey, key, maxOldCaches);
}

function addUse({ database, layout }: Records, cache: string, operation: string, sharing: Sharing): void {
  database
    .query<undefined, [string, string, string, Sharing]>(
      "INSERT INTO cache_uses (cache, operation, owner, sharing) VALUES (?, ?, ?, ?)",
    )
    .run(cache, operation, layout.owner, sharing);
}

/** Releases an operation's caches. */
export function releaseCaches(database: Database, operation: string, now: number): void {
  inTransaction(database, () => endUses(database, "operation", operation, now));
}

function endUses(database: Database, column: "operation" | "owner", value: string, now: number): void {
  database
    .query<undefined, [number, string]>(
      `UPDATE caches SET used_at = ? WHERE name IN (SELECT cache FROM cache_uses WHERE ${column} = ?)`,
    )
    .run(now, value);
  database.query<undefined, [string]>(`DELETE FROM cache_uses WHERE ${column} = ?`).run(value);
}

/** Drops the record of a cache that could not be filled, unless another operation uses it. */
export function forgetCache(database: Database, name: string, operation: string): void {
  database
    .query<undefined, [string, string]>(
      "DELETE FROM caches WHERE name = ? AND NOT EXISTS (SELECT 1 FROM cache_uses WHERE cache = name AND operation != ?)",
    )
    .run(name, operation);
}

/** Drops the uses of killed processes. Call it inside a transaction. */
function forgetDeadUses({ database, layout }: Records, now: number): void {
  const owners = database.query<{ owner: string }, []>("SELECT DISTINCT owner FROM cache_uses").all();
  for (const { owner } of owners) if (!isOpen(layout, owner)) endUses(database, "owner", owner, now);
}

/** Returns true for a valid cache name. Names become paths, and an edited record must not lead elsewhere. */
function isCacheName(name: string): boolean {
  return /^[0-9a-f]{64}\.[0-9a-f]{8}$/.test(name);
}

export function cacheDirectory(layout: Layout, name: string): string {
  if (!isCacheName(name))
    throw new Error(`the record of a cache has an invalid name: ${JSON.stringify(name)}`);
  return join(layout.caches, name);
}

/** Moves a new cache's initial contents into place, unless another process was first. */
export function placeCache(database: Database, layout: Layout, name: string, directory: string): void {
  inTransaction(database, () => {
    const place = cacheDirectory(layout, name);
    if (!existsSync(place)) renameSync(directory, place);
  });
}

/** Returns the paths of all caches. */
export function cachePaths(database: Database, layout: Layout): string[] {
  return database
    .query<{ name: string }, []>("SELECT name FROM caches")
    .all()
    .filter(({ name }) => isCacheName(name))
    .map(({ name }) => cacheDirectory(layout, name));
}

/** Returns the caches that no command is using, with their last use. Call it inside a transaction to remove them. */
export function cachesByUse(records: Records): { name: string; usedAt: number }[] {
  const used = cachesInUse(records);
  return records.database
    .query<{ name: string; usedAt: number }, []>(
      "SELECT name, ifnull(used_at, created_at) AS usedAt FROM caches",
    )
    .all()
    .filter(({ name }) => isCacheName(name) && !used.has(name));
}

/** Returns the caches that living processes are using. */
function cachesInUse({ database, layout }: Records): ReadonlySet<string> {
  const living = usesOf(database).filter(({ owner }) => isOpen(layout, owner));
  return new Set(living.map(({ cache }) => cache));
}

function usesOf(database: Database): { cache: string; owner: string }[] {
  return database.query<{ cache: string; owner: string }, []>("SELECT cache, owner FROM cache_uses").all();
}

/**
 * Replaces the key of a lost cache, so that no command finds it: newer ones have taken its place, or its contents may have holes,
 * because the machine stopped or the disk failed to write them. Commands often trust what they find in a cache, so a hole would stay
 * in it for ever.
 */
const lostKey = "lost";

/**
 * Marks the caches that may not have been on the disk at a time: those in use, and those used since the newest synced layer was made.
 * Call it inside a transaction.
 */
export function markUnsyncedCachesLost(database: Database, now: number): void {
  database
    .query<undefined, [string, number]>(
      // Imported layers can be recorded after their sync. A time after `now` is that of a wrong clock.
      `UPDATE caches SET key = ? WHERE name IN (SELECT cache FROM cache_uses) OR ifnull(used_at, created_at) >= ifnull(
         (SELECT max(created_at) FROM layers
          WHERE content IS NULL AND created_at < ? AND id NOT IN (SELECT layer FROM unsynced_layers)), 0)`,
    )
    .run(lostKey, now);
}

/** Marks the caches that commands were using when the machine stopped. `boot` is the kernel's boot ID. */
export function markInterruptedCachesLost(database: Database, layout: Layout, boot: string): void {
  const lose = database.query<undefined, [string, string]>("UPDATE caches SET key = ? WHERE name = ?");
  for (const { cache, owner } of usesOf(database)) {
    // An owner's name begins with the boot ID. Some containers have a boot ID of their own.
    if (!owner.startsWith(`${boot}.`) && !isOpen(layout, owner)) lose.run(lostKey, cache);
  }
}

/** Drops the lost caches that no living process is using. `removeOrphanedCaches` removes their directories. */
export function dropLostCaches(database: Database, layout: Layout): void {
  // The read comes first: opening an engine must not wait for other processes that write.
  if (database.query("SELECT 1 FROM caches WHERE key = ?").get(lostKey) === null) return;
  inTransaction(database, () => {
    const used = cachesInUse({ database, layout });
    database
      .query<undefined, [string, string]>(
        "DELETE FROM caches WHERE key = ? AND name NOT IN (SELECT value FROM json_each(?))",
      )
      .run(lostKey, JSON.stringify([...used]));
  });
}

/** Removes directories of caches that no record names. */
export async function removeOrphanedCaches(database: Database, layout: Layout): Promise<void> {
  // A cache is recorded before its directory is made.
  const paths = readdirSync(layout.caches).map((name) => join(layout.caches, name));
  const recorded = new Set(cachePaths(database, layout));
  for (const path of paths) if (!recorded.has(path)) await rm(path, { recursive: true, force: true });
}
