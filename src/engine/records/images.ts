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

/** `reference` is a UUID or `tag:<name>`. An image that has lost a layer is not there. */
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
 * The image that was imported or made with this configuration before: the digest covers all of its content. Whatever has become of its
 * record since, it says again what was imported.
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
 * The image with the same files and this configuration and origin: the same one whenever it is asked for. An image's own ones
 * never change, so that what was built on it stays true. `origin`: the image's, where none is given.
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

/** A tag names one image; an image may have several tags. Setting a tag moves it. */
export function setTag(database: Database, tag: string, image: string): void {
  database
    .query<undefined, [string, string]>(
      // A build of which nothing has changed writes nothing.
      "INSERT INTO tags (tag, image) VALUES (?, ?) ON CONFLICT (tag) DO UPDATE SET image = excluded.image WHERE image IS NOT excluded.image",
    )
    .run(tag, image);
}

/** One tag of an image, or all of them; false where there was none. */
export function removeTags(database: Database, image: string, tag: string | undefined): boolean {
  const { changes } = database
    .query<undefined, [string, string | null, string | null]>(
      "DELETE FROM tags WHERE image = ? AND (? IS NULL OR tag = ?)",
    )
    .run(image, tag ?? null, tag ?? null);
  return changes > 0;
}

/** The first of an image's tags. */
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
  /** Whether sizes are told. */
  sizes: boolean;
  limit: number;
  offset: number;
}

/**
 * An exact match of the tag leads, then the newest first. An image with several tags is listed once for each, one that has lost a
 * layer not at all. Only an image that the filter names comes with its configuration, which may be large: a thousand of them are
 * more than a client takes.
 */
export function listImages(records: Records, filter: ImageFilter): ImageRecord[] {
  const { database } = records;
  const conditions = ["1"];
  const parameters: (string | number)[] = [];
  const where = (condition: string, ...values: (string | number)[]) => {
    conditions.push(condition);
    parameters.push(...values);
  };
  // Not LIKE: `_` stands in many tags.
  if (filter.tagPrefix !== undefined)
    where("substr(tag, 1, length(?)) = ?", filter.tagPrefix, filter.tagPrefix);
  // Few images have a tag, and each is large: a FROM does not read them all.
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
  let passedOver = 0;
  for (const row of rows) {
    if (page.length >= filter.limit) break;
    const config = isWhole(row.layer) ? readConfig(database, row.uuid) : undefined;
    if (config === undefined) continue;
    if (passedOver < filter.offset) passedOver++;
    else
      page.push({
        ...toRecord(row, isNamed(row, filter) ? readDescription(database, row.uuid) : undefined),
        ...(filter.sizes ? { size: sizeOf(row.layer) } : {}),
      });
  }
  return page;
}

/** Compares the UUID, or the tag as a FROM has it. */
function isNamed({ uuid, tag }: RecordRow, { uuid: asked, tagPrefix }: ImageFilter): boolean {
  return uuid === asked || (tagPrefix !== undefined && (tag === tagPrefix || tag === `${tagPrefix}:latest`));
}

/** One image under one of its tags, or as an untagged one. */
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

/** An imported image is what its configuration says, whenever it was imported; one that was made here is itself. */
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

/** `undefined`: there is no record, or a damaged one. */
function readConfig(database: Database, uuid: string): ImageConfig | undefined {
  const row = database
    .query<{ config: string }, [string]>("SELECT config FROM images WHERE uuid = ?")
    .get(uuid);
  const stored = row === null ? undefined : parseObject(row.config);
  return stored && parseImageConfig(stored);
}
