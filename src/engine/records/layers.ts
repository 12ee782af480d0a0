import type { Database } from "bun:sqlite";
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { inTransaction } from "../../database.ts";
import { BoughError } from "../../errors.ts";
import { type Layout, moveToScratch } from "../layout.ts";
import { type AbsentBlob, recordAbsent, recordPresent } from "./absent-layers.ts";
import { type LayerFileDigests, recordFileDigests } from "./layer-file-digests.ts";
import { type LayerMarks, recordMarks } from "./layer-marks.ts";
import type { Records } from "./records.ts";
import { recordReplaced, recordUnsynced } from "./unsynced-layers.ts";

/** One overlay directory. Its name on disk is its ID in base 36: short, since all names of a mount share one memory page. */
export interface LayerRecord {
  id: number;
  parent: number | null;
  /** The number of layers down to the lowest, this one included. */
  depth: number;
}

/** A layer's record, with the text of its marks; see `layer-marks.ts`. */
export interface CheckedLayer extends LayerRecord {
  marks: string | null;
}

/** The kernel allows 500; the skeleton and the sandbox's own upper directory need two. */
export const maxDepth = 490;

export function layerDirectory(layout: Layout, id: number): string {
  return join(layout.layers, id.toString(36));
}

/** A directory that becomes a layer's. */
interface LayerContent {
  directory: string;
  marks: LayerMarks;
  /** Set if the directory may not be on the disk yet; see `recordUnsynced`. */
  unsyncedIn?: { boot: string; operation: string };
}

export interface LayerToAdd extends LayerContent {
  parent: LayerRecord | undefined;
  /** Identifies an imported layer. */
  content?: string;
  /** Layers with which it shares hard-linked files. */
  linkedLayers?: ReadonlySet<number>;
  /** See `recordFileDigests`. */
  fileDigests?: LayerFileDigests | undefined;
  createdAt: number;
}

/**
 * Makes `directory` a layer by renaming it. The rename is on disk before the transaction commits, or the layer is noted as
 * unsynced. Call it inside a transaction, which keeps other processes from removing the directory as an orphan.
 */
export function addLayer(database: Database, layout: Layout, layer: LayerToAdd): LayerRecord {
  const { linkedLayers = new Set() } = layer;
  const added = insertLayer(database, layer, linkedLayers.size > 0);
  for (const id of linkedLayers) database.run("UPDATE layers SET has_links = 1 WHERE id = ?", [id]);
  if (layer.fileDigests !== undefined) recordFileDigests(database, added.id, layer.fileDigests);
  placeLayer(database, layout, added.id, layer);
  return added;
}

/** Records a layer whose files are not here yet, with its blobs, the lowest first. */
export function addAbsentLayer(
  database: Database,
  layer: Pick<LayerToAdd, "parent" | "createdAt"> & { content: string },
  blobs: readonly AbsentBlob[],
): LayerRecord {
  const added = insertLayer(database, layer, false);
  recordAbsent(database, added.id, blobs);
  return added;
}

function insertLayer(
  database: Database,
  layer: Pick<LayerToAdd, "parent" | "content" | "createdAt">,
  hasLinks: boolean,
): LayerRecord {
  const parent = layer.parent?.id ?? null;
  const depth = (layer.parent?.depth ?? 0) + 1;
  if (depth > maxDepth) {
    throw new BoughError(`an image can have at most ${maxDepth} layers, and this would be one more`);
  }
  const inserted = database
    .query<{ id: number }, [number | null, number, string | null, number, number]>(
      "INSERT INTO layers (parent, depth, content, has_links, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
    )
    .get(parent, depth, layer.content ?? null, hasLinks ? 1 : 0, layer.createdAt);
  if (inserted === null) throw new Error("SQLite returned no row for an inserted layer");
  return { id: inserted.id, parent, depth };
}

/**
 * Places the directory of an imported layer that was absent, or damaged, which repairs everything built on it. Call it like
 * `addLayer`.
 */
export function restoreLayer(database: Database, layout: Layout, id: number, content: LayerContent): void {
  recordReplaced(database, id);
  placeLayer(database, layout, id, content);
  recordPresent(database, id);
  database
    .query<undefined, [number]>("UPDATE layers SET fingerprint = NULL, size = NULL WHERE id = ?")
    .run(id);
}

/** Removes a layer's link to imported content. */
export function clearContent(database: Database, id: number): void {
  database.query<undefined, [number]>("UPDATE layers SET content = NULL WHERE id = ?").run(id);
}

function placeLayer(
  database: Database,
  layout: Layout,
  id: number,
  { directory, marks, unsyncedIn }: LayerContent,
): void {
  const destination = layerDirectory(layout, id);
  // An existing directory is from a process killed between rename and commit, or belongs to a damaged layer.
  if (lstatSync(destination, { throwIfNoEntry: false }) !== undefined) moveToScratch(layout, destination);
  renameSync(directory, destination);
  recordMarks(database, id, destination, marks);
  if (unsyncedIn === undefined) syncDirectory(layout.layers);
  else recordUnsynced(database, id, unsyncedIn);
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export function findLayer(database: Database, id: number): LayerRecord | undefined {
  return (
    database.query<LayerRecord, [number]>("SELECT id, parent, depth FROM layers WHERE id = ?").get(id) ??
    undefined
  );
}

/** Returns a layer and up to 31 of those below it, if they have records. One query for each layer takes several times as long. */
export function layersDownFrom(database: Database, id: number): CheckedLayer[] {
  return database
    .query<CheckedLayer, [number]>(
      `WITH RECURSIVE chain (id, parent, depth, marks) AS (
         SELECT id, parent, depth, marks FROM layers WHERE id = ?
         UNION SELECT layers.id, layers.parent, layers.depth, layers.marks
           FROM layers JOIN chain ON layers.id = chain.parent LIMIT 32
       ) SELECT id, parent, depth, marks FROM chain`,
    )
    .all(id);
}

/** Returns all layers, in no particular order. */
export function allLayers(database: Database): CheckedLayer[] {
  return database.query<CheckedLayer, []>("SELECT id, parent, depth, marks FROM layers").all();
}

/** Returns the names of layers' directories in `layout.layers`; any other is an orphan. */
export function layerNames(database: Database): string[] {
  return database
    .query<{ id: number }, []>("SELECT id FROM layers")
    .all()
    .map(({ id }) => id.toString(36));
}

/** Returns those of the layers that share hard-linked files with others. */
export function layersWithLinks(database: Database, ids: readonly number[]): number[] {
  const query = database.query<{ has_links: number }, [number]>("SELECT has_links FROM layers WHERE id = ?");
  return ids.filter((id) => (query.get(id)?.has_links ?? 0) > 0);
}

/** Finds the layer that, with those below it, has the content of an imported image or of its lowest layers. */
export function findLayerByContent(database: Database, content: string): LayerRecord | undefined {
  return (
    database
      .query<LayerRecord, [string]>("SELECT id, parent, depth FROM layers WHERE content = ?")
      .get(content) ?? undefined
  );
}

/** Returns a layer and all layers below it, the uppermost first. */
export function layerChain(database: Database, id: number): number[] {
  return database
    .query<{ id: number }, [number]>(
      `WITH RECURSIVE chain (id, parent, depth) AS (
         SELECT id, parent, depth FROM layers WHERE id = ?
         UNION SELECT layers.id, layers.parent, layers.depth FROM layers JOIN chain ON layers.id = chain.parent
       ) SELECT id FROM chain ORDER BY depth DESC`,
    )
    .all(id)
    .map((row) => row.id);
}

/** Returns what `layerChain` does, with the time at which each layer was made, and the content of imported ones. */
export function contentsDownFrom(
  database: Database,
  id: number,
): { id: number; created_at: number; content: string | null }[] {
  return database
    .query<{ id: number; created_at: number; content: string | null }, [number]>(
      `WITH RECURSIVE chain (id, parent, depth, created_at, content) AS (
         SELECT id, parent, depth, created_at, content FROM layers WHERE id = ?
         UNION SELECT layers.id, layers.parent, layers.depth, layers.created_at, layers.content
           FROM layers JOIN chain ON layers.id = chain.parent
       ) SELECT id, created_at, content FROM chain ORDER BY depth DESC`,
    )
    .all(id);
}

/**
 * Returns overlayfs's mount options for `layers`, with names relative to the layers' directory. With an `operation` directory,
 * changes go to its `upper`; otherwise the mount is read-only. `isRoot` is false for anything but a sandbox's root file system.
 */
export function overlayOptions(
  layout: Layout,
  layers: readonly number[],
  mount: { operation: string | undefined; inUserNamespace: boolean; isRoot?: boolean },
): string {
  const lowest = mount.operation === undefined || mount.isRoot === false ? layout.empty : layout.skeleton;
  const lower = [...layers.map((id) => id.toString(36)), relative(layout.layers, lowest)].join(":");
  const options = [`lowerdir=${lower}`, ...(mount.inUserNamespace ? ["userxattr"] : [])];
  // An overlay without an upper directory is read-only.
  if (mount.operation === undefined) return options.join(",");
  const work = relative(layout.layers, mount.operation);
  // volatile: the engine itself syncs a layer when it keeps it. The other options keep every upper directory self-contained.
  const features = ["volatile", "index=off", "metacopy=off", "redirect_dir=nofollow"];
  return [...options, `upperdir=${work}/upper`, `workdir=${work}/work`, ...features].join(",");
}

/** Removes directories of layers, listings and blobs whose transaction did not commit. */
export async function removeOrphanedLayers(records: Records): Promise<void> {
  for (const path of takeUnrecorded(records, orphanedLayers))
    await rm(path, { recursive: true, force: true });
}

/** Returns the directories of layers, listings and blobs that no record names. */
export function orphanedLayers({ database, layout }: Records): string[] {
  const known = new Set(layerNames(database));
  return [layout.layers, layout.listings, layout.blobs].flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => !known.has(name))
      .map((name) => join(directory, name)),
  );
}

/** Moves the orphans that `find` returns into the scratch directory. Returns the new paths. */
export function takeUnrecorded(records: Records, find: (records: Records) => readonly string[]): string[] {
  // While this process holds the write lock, no other is between a rename and its commit.
  return inTransaction(records.database, () =>
    find(records).map((path) => moveToScratch(records.layout, path)),
  );
}
