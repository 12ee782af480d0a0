import type { Database } from "bun:sqlite";
import { resolve } from "node:path";
import { isDamaged, openDatabase } from "../database.ts";
import { unusableDirectoryError } from "./faults.ts";
import { closeLayout, type Layout, makeLayout } from "./layout.ts";

/** Opens an engine's directory while `use` runs. Other processes may use it meanwhile. */
export async function withEngineDirectory<T>(
  directory: string,
  use: (database: Database, layout: Layout) => T | Promise<T>,
): Promise<T> {
  const { layout, database } = openEngineDirectory(directory);
  try {
    return await use(database, layout);
  } catch (error) {
    // Some damage appears only when records are read.
    throw isDamaged(error) ? unusableDirectoryError(error, directory) : error;
  } finally {
    database.close();
    await closeLayout(layout);
  }
}

/** Opens an engine's records. Makes the parts of its directory that are missing. */
export function openEngineDirectory(given: string): { layout: Layout; database: Database } {
  const directory = resolve(given);
  let layout: Layout | undefined;
  try {
    layout = makeLayout(directory);
    return { layout, database: openDatabase(layout.database, migrations) };
  } catch (error) {
    // Its scratch directory is empty, so this is done at once.
    if (layout !== undefined) void closeLayout(layout);
    throw unusableDirectoryError(error, directory);
  }
}

/** The engine's tables. Each entry migrates from the version of its index to the next, and is never edited once released. */
export const migrations: readonly string[] = [
  `CREATE TABLE layers (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     parent INTEGER REFERENCES layers (id),
     depth INTEGER NOT NULL,
     content TEXT UNIQUE,
     created_at INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE images (
     uuid TEXT PRIMARY KEY,
     layer INTEGER NOT NULL REFERENCES layers (id),
     config TEXT NOT NULL,
     config_digest TEXT UNIQUE,
     operation TEXT,
     created_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX images_by_layer ON images (layer);
   CREATE TABLE tags (
     tag TEXT PRIMARY KEY,
     image TEXT NOT NULL REFERENCES images (uuid) ON DELETE CASCADE
   ) STRICT;
   CREATE INDEX tags_by_image ON tags (image);
   CREATE TABLE files (
     sha256 TEXT PRIMARY KEY,
     uuid TEXT NOT NULL UNIQUE,
     size INTEGER NOT NULL,
     created_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE operations (
     uuid TEXT PRIMARY KEY,
     kind TEXT NOT NULL,
     status TEXT NOT NULL,
     error TEXT,
     owner TEXT NOT NULL,
     cancel_requested INTEGER NOT NULL DEFAULT 0,
     metadata TEXT NOT NULL,
     result TEXT,
     start_image TEXT,
     result_image TEXT,
     result_tag TEXT,
     created_at INTEGER NOT NULL,
     finished_at INTEGER
   ) STRICT;
   CREATE INDEX operations_by_time ON operations (created_at);`,
  // Version 0.1.0 did not verify imports: new imports must not reuse them.
  `UPDATE images SET config_digest = NULL;
   UPDATE layers SET content = NULL;`,
  // The fingerprint is set by the first `engine check` of the layer.
  "ALTER TABLE layers ADD COLUMN fingerprint TEXT;",
  // An image's configuration in OCI's format. Fields that older versions left out come with the next import.
  `UPDATE images SET config = json_patch('{}', json_object(
     'Env', json((SELECT json_group_array(key || '=' || value) FROM json_each(config, '$.env') WHERE type = 'text')),
     'WorkingDir', config ->> 'workingDirectory',
     'User', config ->> 'user',
     'OnBuild', config -> 'onbuild',
     'Shell', config -> 'shell'
   )) WHERE CASE WHEN json_valid(config) THEN json_type(config) = 'object' ELSE FALSE END;`,
  // `has_links` is 1 if the layer shares hard-linked files with another one.
  "ALTER TABLE layers ADD COLUMN has_links INTEGER NOT NULL DEFAULT 0;",
  // The directories of cache mounts, and the commands that use them.
  `CREATE TABLE caches (
     name TEXT PRIMARY KEY,
     key TEXT NOT NULL,
     created_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX caches_by_key ON caches (key);
   CREATE TABLE cache_uses (
     cache TEXT NOT NULL REFERENCES caches (name) ON DELETE CASCADE,
     operation TEXT NOT NULL,
     owner TEXT NOT NULL,
     sharing TEXT NOT NULL
   ) STRICT;`,
  // Layers that may not be on the disk yet, and the boot ID under which they were made.
  `CREATE TABLE unsynced_layers (
     layer INTEGER PRIMARY KEY REFERENCES layers (id) ON DELETE CASCADE,
     boot TEXT NOT NULL
   ) STRICT;`,
  // The bytes of a layer on disk, which are measured on first use.
  "ALTER TABLE layers ADD COLUMN size INTEGER;",
  // An image's author and history, in OCI's format.
  "ALTER TABLE images ADD COLUMN origin TEXT;",
  // The time of the cache's last use.
  "ALTER TABLE caches ADD COLUMN used_at INTEGER;",
  // Every start of an engine needs the unfinished operations, and must not read all finished ones with their requests and results.
  "CREATE INDEX unfinished_operations ON operations (uuid) WHERE finished_at IS NULL;",
  // `sync_failed` is 1 if a sync to the disk has failed since the operation began.
  "ALTER TABLE operations ADD COLUMN sync_failed INTEGER NOT NULL DEFAULT 0;",
  // The syncs to the disk that have failed.
  `CREATE TABLE failed_syncs (
     id INTEGER PRIMARY KEY,
     started_at INTEGER NOT NULL
   ) STRICT;`,
  // Marks of deleted files that a copy of the directory can lose; see `layer-marks.ts`.
  "ALTER TABLE layers ADD COLUMN marks TEXT;",
  // Sizes are those of the files, no longer of their blocks on the disk.
  "UPDATE layers SET size = NULL;",
  // The blobs of layers whose files are not here yet, the lowest first, and the address from which they can be fetched.
  `CREATE TABLE absent_layers (
     layer INTEGER NOT NULL REFERENCES layers (id) ON DELETE CASCADE,
     position INTEGER NOT NULL,
     source TEXT NOT NULL,
     media_type TEXT NOT NULL,
     digest TEXT NOT NULL,
     size INTEGER NOT NULL,
     diff_id TEXT NOT NULL,
     PRIMARY KEY (layer, position)
   ) STRICT;`,
  // A tag names an image for each platform. `tags` has those of the machine's own: older processes that still run write to it.
  `CREATE TABLE foreign_tags (
     tag TEXT NOT NULL,
     platform TEXT NOT NULL,
     image TEXT NOT NULL REFERENCES images (uuid) ON DELETE CASCADE,
     PRIMARY KEY (tag, platform)
   ) STRICT;
   CREATE INDEX foreign_tags_by_image ON foreign_tags (image);
   CREATE VIEW all_tags AS
     SELECT tag, '' AS platform, image FROM tags UNION ALL SELECT tag, platform, image FROM foreign_tags;`,
  // The build for which the cache was made, if that has started with empty caches.
  "ALTER TABLE caches ADD COLUMN generation TEXT;",
  // Places that have blobs of absent layers, too, and blobs whose content is not that of a layer for which they were declared.
  `CREATE TABLE other_places (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     layer INTEGER NOT NULL REFERENCES layers (id) ON DELETE CASCADE,
     position INTEGER NOT NULL,
     source TEXT NOT NULL,
     media_type TEXT NOT NULL,
     digest TEXT NOT NULL,
     size INTEGER NOT NULL,
     diff_id TEXT NOT NULL
   ) STRICT;
   CREATE INDEX other_places_by_layer ON other_places (layer);
   CREATE TABLE forged_blobs (
     digest TEXT NOT NULL,
     diff_id TEXT NOT NULL,
     PRIMARY KEY (digest, diff_id)
   ) STRICT, WITHOUT ROWID;`,
  // What files a layer was made of, and the later version that shares some of them; see `records/layer-file-digests.ts`.
  `CREATE TABLE placed_files (
     layer INTEGER PRIMARY KEY REFERENCES layers (id) ON DELETE CASCADE,
     digests BLOB NOT NULL
   ) STRICT;
   ALTER TABLE layers ADD COLUMN heir INTEGER;
   ALTER TABLE layers ADD COLUMN heir_bytes INTEGER;
   CREATE INDEX layers_by_heir ON layers (heir) WHERE heir IS NOT NULL;
   CREATE TRIGGER next_heir AFTER DELETE ON layers BEGIN
     UPDATE layers SET heir = OLD.heir, heir_bytes = iif(OLD.heir IS NULL, NULL, min(heir_bytes, OLD.heir_bytes))
       WHERE heir = OLD.id;
   END;`,
  // Where the blob of a layer has a table of contents; see `records/layer-listings.ts`.
  "ALTER TABLE absent_layers ADD COLUMN contents_table TEXT;",
];
