import type { Database } from "bun:sqlite";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { isDigest } from "../../image/digest.ts";
import { type ImageOrigin, parseOrigin } from "../../image/history.ts";
import type { ImageRecord } from "../../service/wire/image.ts";
import { sha256Of } from "../../sha256.ts";
import { RequestError } from "../http/answers.ts";
import { machineArchitecture } from "../system/machine.ts";
import { parseObject } from "./json-column.ts";
import { createImageSizes } from "./layer-sizes.ts";
import { createLayerCheck, type Records } from "./whole-layers.ts";

export interface Image {
  uuid: string;
  layer: number;
  config: ImageConfig;
  origin: ImageOrigin;
}

export function addImage(
  database: Database,
  image: {
    layer: number;
    config: ImageConfig;
    origin: ImageOrigin;
    configDigest?: string | undefined;
    operation: string | null;
    createdAt: number;
  },
): string {
  const uuid = crypto.randomUUID();
  database
    .query<undefined, [string, number, string, string, string | null, string | null, number]>(
      "INSERT INTO images (uuid, layer, config, origin, config_digest, operation, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .run(
      uuid,
      image.layer,
      JSON.stringify(image.config),
      JSON.stringify(image.origin),
      image.configDigest ?? null,
      image.operation,
      image.createdAt,
    );
  return uuid;
}

/** Finds an image by UUID or `tag:<name>`. Returns `undefined` for an image that has lost a layer. */
export function findImage(records: Records, reference: string): Image | undefined {
  const { database } = records;
  const tag = reference.startsWith("tag:") ? reference.slice("tag:".length) : undefined;
  const query =
    tag === undefined
      ? "SELECT uuid, layer FROM images WHERE uuid = ?"
      : "SELECT uuid, layer FROM images JOIN tags ON tags.image = images.uuid WHERE tag = ?";
  const row = database.query<{ uuid: string; layer: number }, [string]>(query).get(tag ?? reference);
  const described = row === null ? undefined : readDescription(database, row.uuid);
  if (row === null || described === undefined || !createLayerCheck(records)(row.layer)) return undefined;
  return { ...row, ...described };
}

export function requireImage(records: Records, reference: string): Image {
  const image = findImage(records, reference);
  if (image === undefined) throw new RequestError(404, `there is no image ${reference}`);
  return image;
}

/**
 * Returns the image that was imported or made with this configuration before; the digest covers all of its content. Resets its
 * record to the given values, in case it was changed or damaged.
 */
export function findImportedImage(
  database: Database,
  image: { layer: number; config: ImageConfig; origin: ImageOrigin; configDigest: string },
): string | undefined {
  const { layer, config, origin, configDigest } = image;
  return database
    .query<{ uuid: string }, [number, string, string, string]>(
      "UPDATE images SET layer = ?, config = ?, origin = ? WHERE config_digest = ? RETURNING uuid",
    )
    .get(layer, JSON.stringify(config), JSON.stringify(origin), configDigest)?.uuid;
}

/**
 * Returns the image with the same files and this configuration and origin; the same request always gives the same image. The
 * given image itself never changes, since others are built on it. `origin`: the given image's by default.
 */
export function configureImage(
  database: Database,
  { uuid, layer, config: before, origin: originBefore }: Image,
  { config, origin = originBefore }: { config: ImageConfig; origin: ImageOrigin | undefined },
  createdAt: number,
): string {
  if (Bun.deepEquals(before, config) && Bun.deepEquals(originBefore, origin)) return uuid;
  const text = JSON.stringify([layer, config, origin]);
  const configDigest = `configured:${sha256Of(text)}`;
  const known = findImportedImage(database, { layer, config, origin, configDigest });
  const { operation } = database
    .query<{ operation: string | null }, [string]>("SELECT operation FROM images WHERE uuid = ?")
    .get(uuid) ?? { operation: null };
  return known ?? addImage(database, { layer, config, origin, configDigest, operation, createdAt });
}

/** Sets or moves a tag. A tag names one image; an image may have several tags. */
export function setTag(database: Database, tag: string, image: string): void {
  database
    .query<undefined, [string, string]>(
      // An unchanged build writes nothing.
      "INSERT INTO tags (tag, image) VALUES (?, ?) ON CONFLICT (tag) DO UPDATE SET image = excluded.image WHERE image IS NOT excluded.image",
    )
    .run(tag, image);
}

/** Removes one tag of an image, or all. Returns false if there was none. */
export function removeTags(database: Database, image: string, tag: string | undefined): boolean {
  const { changes } = database
    .query<undefined, [string, string | null, string | null]>(
      "DELETE FROM tags WHERE image = ? AND (? IS NULL OR tag = ?)",
    )
    .run(image, tag ?? null, tag ?? null);
  return changes > 0;
}

/** Returns the first of an image's tags. */
export function findTag(database: Database, image: string): string | null {
  const query = "SELECT tag FROM tags WHERE image = ? ORDER BY tag LIMIT 1";
  return database.query<{ tag: string }, [string]>(query).get(image)?.tag ?? null;
}

interface ImageFilter {
  tagPrefix: string | undefined;
  taggedOnly: boolean;
  uuid: string | undefined;
  /** Milliseconds since the epoch, both inclusive. */
  since: number | undefined;
  until: number | undefined;
  /** True to include sizes. */
  sizes: boolean;
  limit: number;
  offset: number;
}

/**
 * Lists images: an exact match of the tag first, then the newest first. An image with several tags is listed once for each. An
 * image that has lost a layer is left out. Only an image that the filter names has its configuration, which may be large: a
 * thousand of them are more than a client accepts.
 */
export function listImages(records: Records, filter: ImageFilter): ImageRecord[] {
  const { database } = records;
  const conditions = ["1"];
  const parameters: (string | number)[] = [];
  const where = (condition: string, ...values: (string | number)[]) => {
    conditions.push(condition);
    parameters.push(...values);
  };
  // LIKE would treat the `_` of many tags as a wildcard.
  if (filter.tagPrefix !== undefined)
    where("substr(tag, 1, length(?)) = ?", filter.tagPrefix, filter.tagPrefix);
  // Few images have a tag, and each row is large: a FROM must not read all of them.
  const isTagged = filter.tagPrefix !== undefined || filter.taggedOnly;
  const source = isTagged ? "tags CROSS JOIN images" : "images LEFT JOIN tags";
  if (filter.uuid !== undefined) where("uuid = ?", filter.uuid);
  if (filter.since !== undefined) where("created_at >= ?", filter.since);
  if (filter.until !== undefined) where("created_at <= ?", filter.until);
  const rows = database
    .query<RecordRow & { layer: number }, (string | number)[]>(
      `SELECT uuid, layer, tag, created_at, operation, config_digest FROM ${source} ON tags.image = images.uuid
       WHERE ${conditions.join(" AND ")} ORDER BY tag IS ? DESC, created_at DESC, images.rowid DESC, tag`,
    )
    .all(...parameters, filter.tagPrefix ?? "");
  const isWhole = createLayerCheck(records);
  const sizeOf = createImageSizes(records);
  const page: ImageRecord[] = [];
  let skipped = 0;
  for (const row of rows) {
    if (page.length >= filter.limit) break;
    const config = isWhole(row.layer) ? readConfig(database, row.uuid) : undefined;
    if (config === undefined) continue;
    if (skipped < filter.offset) skipped++;
    else
      page.push({
        ...toRecord(row, isNamed(row, filter) ? readDescription(database, row.uuid) : undefined),
        ...(filter.sizes ? { size: sizeOf(row.layer) } : {}),
      });
  }
  return page;
}

/** True if the filter names this image by its UUID, or by its tag as in a FROM. */
function isNamed({ uuid, tag }: RecordRow, { uuid: asked, tagPrefix }: ImageFilter): boolean {
  return uuid === asked || (tagPrefix !== undefined && (tag === tagPrefix || tag === `${tagPrefix}:latest`));
}

/** Returns the record of an image with one of its tags, or without a tag. */
export function describeImage(database: Database, uuid: string, tag: string | null): ImageRecord {
  const row = database
    .query<Omit<RecordRow, "tag">, [string]>(
      "SELECT uuid, created_at, operation, config_digest FROM images WHERE uuid = ?",
    )
    .get(uuid);
  const described = readDescription(database, uuid);
  if (row === null || described === undefined) throw new RequestError(404, `there is no image ${uuid}`);
  return toRecord({ ...row, tag }, described);
}

interface RecordRow {
  uuid: string;
  tag: string | null;
  created_at: number;
  operation: string | null;
  config_digest: string | null;
}

function toRecord(row: RecordRow, described: Description | undefined): ImageRecord {
  const { author, history } = described?.origin ?? {};
  return {
    uuid: row.uuid,
    tag: row.tag,
    created_at: new Date(row.created_at).toISOString(),
    operation_uuid: row.operation,
    ...(described === undefined ? {} : { oci_config: described.config, identity: identityOf(row) }),
    ...(author === undefined ? {} : { oci_author: author }),
    ...(history === undefined ? {} : { oci_history: history }),
  };
}

/** Returns an image's identity: the configuration's digest of an imported image, the UUID of one made here. */
function identityOf({ uuid, config_digest: digest }: RecordRow): string {
  return `linux/${machineArchitecture()} ${isDigest(digest) ? digest : uuid}`;
}

type Description = Pick<Image, "config" | "origin">;

function readDescription(database: Database, uuid: string): Description | undefined {
  const config = readConfig(database, uuid);
  if (config === undefined) return undefined;
  const row = database
    .query<{ origin: string | null }, [string]>("SELECT origin FROM images WHERE uuid = ?")
    .get(uuid);
  return { config, origin: parseOrigin(parseObject(row?.origin ?? "{}") ?? {}) };
}

/** Reads an image's configuration; `undefined` if its record is missing or damaged. */
function readConfig(database: Database, uuid: string): ImageConfig | undefined {
  const row = database
    .query<{ config: string }, [string]>("SELECT config FROM images WHERE uuid = ?")
    .get(uuid);
  const stored = row === null ? undefined : parseObject(row.config);
  return stored && parseImageConfig(stored);
}
