import type { Database } from "bun:sqlite";
import { rm } from "node:fs/promises";
import { inTransaction } from "../database.ts";
import { isSha256 } from "../sha256.ts";
import type { Damage } from "./check/contents.ts";
import { withEngineDirectory } from "./engine-directory.ts";
import type { Layout } from "./layout.ts";
import { dropDamagedFiles } from "./records/files.ts";
import { removeTags, tagTables } from "./records/images.ts";
import { blobsDirectory } from "./records/imported-blobs.ts";
import { layerChain, layerDirectory } from "./records/layers.ts";
import { imagesInUse } from "./records/operations.ts";

/**
 * Removes what `checkEngine` has found damaged, with its records, as if the files had never been uploaded and the images never been
 * made. Images that a running operation uses stay. Returns the damage that remains.
 */
export function repairEngine(directory: string, damage: readonly Damage[]): Promise<Damage[]> {
  if (damage.some(({ kind }) => kind === "database")) return Promise.resolve([...damage]);
  return withEngineDirectory(directory, async (database, layout) => {
    const named = (kind: Damage["kind"]) =>
      damage.filter((each) => each.kind === kind).map(({ name }) => name);
    dropDamagedFiles(database, layout, named("file").filter(isSha256));
    const { layers, kept } = inTransaction(database, () => {
      // Damaged records may point in any direction.
      database.run("PRAGMA defer_foreign_keys = ON");
      for (const name of named("file").filter((name) => !isSha256(name)))
        remove(database, "files", "sha256", name);
      for (const name of named("tag")) removeLostTag(database, name);
      const inUse = imagesInUse({ database, layout });
      const damaged = new Set(named("layer").map((name) => Number.parseInt(name, 36)));
      return dropImages(database, damaged, new Set(named("image")), inUse);
    });
    // Files go after their records: a record without its file is damage, a file without a record is removed at the next start.
    const blobs = named("blob").map((name) => Number.parseInt(name, 36));
    for (const id of [...layers, ...blobs])
      await rm(blobsDirectory(layout, id), { recursive: true, force: true });
    await removeLayers(layout, layers);
    return damage.filter(({ images }) => images.some((uuid) => kept.has(uuid)));
  });
}

/** Drops layers and the images built on them, as `repairEngine` does. Returns the number of dropped layers. */
export async function dropLayers(
  database: Database,
  layout: Layout,
  find: () => readonly number[],
): Promise<number> {
  const { layers } = inTransaction(database, () => {
    database.run("PRAGMA defer_foreign_keys = ON");
    return dropImages(database, new Set(find()), new Set(), imagesInUse({ database, layout }));
  });
  await removeLayers(layout, layers);
  return layers.length;
}

/** Removes layers' directories. Call it after their records are gone: a record without its directory would be damage. */
async function removeLayers(layout: Layout, layers: readonly number[]): Promise<void> {
  for (const id of layers) await rm(layerDirectory(layout, id), { recursive: true, force: true });
}

/** Returns the dropped layers, and the images that had to stay. */
function dropImages(
  database: Database,
  damaged: ReadonlySet<number>,
  own: ReadonlySet<string>,
  inUse: ReadonlySet<string>,
): { layers: number[]; kept: Set<string> } {
  const isBuiltOnDamage = (layer: number) => layerChain(database, layer).some((id) => damaged.has(id));
  const images = database.query<{ uuid: string; layer: number }, []>("SELECT uuid, layer FROM images").all();
  const damagedImages = images.filter(({ uuid, layer }) => own.has(uuid) || isBuiltOnDamage(layer));
  const kept = damagedImages.filter(({ uuid }) => inUse.has(uuid));
  for (const { uuid } of damagedImages) {
    if (inUse.has(uuid)) continue;
    removeTags(database, uuid, undefined);
    remove(database, "images", "uuid", uuid);
  }
  const needed = new Set(kept.flatMap(({ layer }) => layerChain(database, layer)));
  const layers = database
    .query<{ id: number }, []>("SELECT id FROM layers")
    .all()
    .map(({ id }) => id)
    .filter((id) => !needed.has(id) && isBuiltOnDamage(id));
  for (const id of layers) remove(database, "layers", "id", id);
  return { layers, kept: new Set(kept.map(({ uuid }) => uuid)) };
}

/** Removes a tag from images that are missing. It may also name images for other platforms, which stay. */
function removeLostTag(database: Database, tag: string): void {
  for (const table of tagTables)
    database.query(`DELETE FROM ${table} WHERE tag = ? AND image NOT IN (SELECT uuid FROM images)`).run(tag);
}

function remove(database: Database, table: string, key: string, value: string | number): void {
  database.query(`DELETE FROM ${table} WHERE ${key} = ?`).run(value);
}
