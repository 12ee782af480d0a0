/**
 * Contents of cache mounts that may have holes, because the machine stopped or the disk failed to write them: no command gets them.
 * Commands often trust what they find in a cache, so a hole would stay in it for ever.
 */
import type { Database } from "bun:sqlite";
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import { isOpen, type Layout } from "../layout.ts";
import { cachePaths } from "./caches.ts";

/** Stands in place of the key of a lost cache, so that no command finds it. */
const lostKey = "lost";

/**
 * Marks the caches that may not have been on the disk at a time: those in use, and those used since the newest layer that a sync
 * has brought there. Call it inside a transaction.
 */
export function loseUnsyncedCaches(database: Database, now: number): void {
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
export function loseInterruptedCaches(database: Database, layout: Layout, boot: string): void {
  const names = database
    .query<{ cache: string; owner: string }, []>("SELECT cache, owner FROM cache_uses")
    .all()
    // An owner's name begins with the boot ID. Some containers have one of their own.
    .flatMap(({ cache, owner }) => (owner.startsWith(`${boot}.`) || isOpen(layout, owner) ? [] : cache));
  const lose = database.query<undefined, [string, string]>("UPDATE caches SET key = ? WHERE name = ?");
  for (const name of names) lose.run(lostKey, name);
}

/** Drops the lost caches that no living process is using. Their directories are leftovers then. */
export function dropLostCaches(database: Database, layout: Layout): void {
  // Reading comes first: opening an engine must not wait for other processes that write.
  if (database.query("SELECT 1 FROM caches WHERE key = ?").get(lostKey) === null) return;
  inTransaction(database, () => {
    const uses = database
      .query<{ cache: string; owner: string }, [string]>(
        "SELECT cache, owner FROM cache_uses JOIN caches ON name = cache WHERE key = ?",
      )
      .all(lostKey);
    const used = new Set(uses.filter(({ owner }) => isOpen(layout, owner)).map(({ cache }) => cache));
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
