import type { Database } from "bun:sqlite";
import { closeSync, fsyncSync, lstatSync, openSync, renameSync } from "node:fs";
import { join, relative } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Layout } from "../layout.ts";
import { noteUnsynced } from "./unsynced-layers.ts";

/** One overlay directory. Its name on disk is its number in base 36, since all names of a mount share one page. */
export interface LayerRecord {
  id: number;
  parent: number | null;
  /** How many layers it stands on, itself included. */
  depth: number;
}

/** The kernel takes 500; the skeleton and the sandbox's own upper directory need two. */
export const maxDepth = 480;

export function layerDirectory(layout: Layout, id: number): string {
  return join(layout.layers, id.toString(36));
}

/**
 * Makes `directory` a layer: a rename, durable before the surrounding transaction is, or noted as unsynced. Call it inside a transaction, which
 * keeps other processes from taking the renamed directory for a leftover. `content` identifies an imported layer.
 */
export function addLayer(
  database: Database,
  layout: Layout,
  layer: {
    directory: string;
    parent: LayerRecord | undefined;
    content?: string;
    /** Files in it are those layers', too. */
    linkedLayers?: ReadonlySet<number>;
    /** The machine's run, where the directory is not known to be on the disk; see `noteUnsynced`. */
    unsyncedIn?: string;
    createdAt: number;
  },
): LayerRecord {
  const parent = layer.parent?.id ?? null;
  const { linkedLayers = new Set() } = layer;
  const depth = (layer.parent?.depth ?? 0) + 1;
  if (depth > maxDepth) {
    throw new BoughError(`an image can have at most ${maxDepth} layers, and this would be one more`);
  }
  const inserted = database
    .query<{ id: number }, [number | null, number, string | null, number, number]>(
      "INSERT INTO layers (parent, depth, content, has_links, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
    )
    .get(parent, depth, layer.content ?? null, linkedLayers.size > 0 ? 1 : 0, layer.createdAt);
  if (inserted === null) throw new Error("SQLite answered no row for an inserted layer");
  for (const id of linkedLayers) database.run("UPDATE layers SET has_links = 1 WHERE id = ?", [id]);
  if (layer.unsyncedIn !== undefined) noteUnsynced(database, inserted.id, layer.unsyncedIn);
  placeLayer(layout, inserted.id, layer.directory);
  if (layer.unsyncedIn === undefined) syncDirectory(layout.layers);
  return { id: inserted.id, parent, depth };
}

/** Puts the content of an imported layer that was damaged back in its place: all that stands on it is whole again. As `addLayer`. */
export function restoreLayer(database: Database, layout: Layout, id: number, directory: string): void {
  placeLayer(layout, id, directory);
  syncDirectory(layout.layers);
  database.query<undefined, [number]>("UPDATE layers SET fingerprint = NULL WHERE id = ?").run(id);
}

/** The layer stands for what was imported no more. */
export function disownContent(database: Database, id: number): void {
  database.query<undefined, [number]>("UPDATE layers SET content = NULL WHERE id = ?").run(id);
}

function placeLayer(layout: Layout, id: number, directory: string): void {
  const destination = layerDirectory(layout, id);
  // Left by a process that was killed between the rename and its commit: no row, hence nobody's. Or damaged, and replaced.
  if (lstatSync(destination, { throwIfNoEntry: false }) !== undefined)
    renameSync(destination, join(layout.scratch, crypto.randomUUID()));
  renameSync(directory, destination);
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  fsyncSync(directory);
  closeSync(directory);
}

export function findLayer(database: Database, id: number): LayerRecord | undefined {
  return (
    database.query<LayerRecord, [number]>("SELECT id, parent, depth FROM layers WHERE id = ?").get(id) ??
    undefined
  );
}

/** The directories in `layout.layers` that are layers; any other is a leftover. */
export function layerNames(database: Database): string[] {
  return database
    .query<{ id: number }, []>("SELECT id FROM layers")
    .all()
    .map(({ id }) => id.toString(36));
}

/** Those of the layers whose files are other layers', too. */
export function layersWithLinks(database: Database, ids: readonly number[]): number[] {
  const query = database.query<{ has_links: number }, [number]>("SELECT has_links FROM layers WHERE id = ?");
  return ids.filter((id) => query.get(id)?.has_links === 1);
}

/** The layer that, with those below it, is an imported image's content or the lower part of it, by the digest of all its parts. */
export function findLayerByContent(database: Database, content: string): LayerRecord | undefined {
  return (
    database
      .query<LayerRecord, [string]>("SELECT id, parent, depth FROM layers WHERE content = ?")
      .get(content) ?? undefined
  );
}

/** A layer and all those below it, the uppermost first. */
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

/**
 * overlayfs's options for `layers`, with names relative to the directory of the layers. With an `operation` directory
 * changes go to its `upper`; without, the mount is read-only. `isRoot: false`: it is not a root file system of a sandbox.
 */
export function overlayOptions(
  layout: Layout,
  layers: readonly number[],
  mount: { operation: string | undefined; inUserNamespace: boolean; isRoot?: boolean },
): string {
  const lowest = mount.operation === undefined || mount.isRoot === false ? layout.empty : layout.skeleton;
  const lower = [...layers.map((id) => id.toString(36)), relative(layout.layers, lowest)].join(":");
  const options = [`lowerdir=${lower}`, ...(mount.inUserNamespace ? ["userxattr"] : [])];
  if (mount.operation === undefined) return [...options, "ro"].join(",");
  const work = relative(layout.layers, mount.operation);
  // volatile: the engine syncs a layer itself when it keeps it. The rest: every upper directory stands on its own.
  const features = ["volatile", "index=off", "metacopy=off", "redirect_dir=nofollow"];
  return [...options, `upperdir=${work}/upper`, `workdir=${work}/work`, ...features].join(",");
}
