import type { Database } from "bun:sqlite";
import type { ImageRecord } from "../../service/types.ts";
import { RequestError } from "../http/answers.ts";

/** What a command in the image gets from it where the request says nothing. */
export interface ImageConfig {
  env: Record<string, string>;
  workingDirectory: string | undefined;
  /** Says as whom a build goes on from this image; a request that names nobody is root's all the same. */
  user: string | undefined;
  /** What no command here gets from it, and a build has to tell its user. */
  onbuild: readonly string[];
  shell: readonly string[];
}

export interface Image {
  uuid: string;
  layer: number;
  config: ImageConfig;
}

interface ImageRow {
  uuid: string;
  layer: number;
  config: string;
}

export function addImage(
  database: Database,
  image: {
    layer: number;
    config: ImageConfig;
    configDigest?: string | undefined;
    operation: string;
    createdAt: number;
  },
): string {
  const uuid = crypto.randomUUID();
  database
    .query<undefined, [string, number, string, string | null, string, number]>(
      "INSERT INTO images (uuid, layer, config, config_digest, operation, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .run(
      uuid,
      image.layer,
      JSON.stringify(image.config),
      image.configDigest ?? null,
      image.operation,
      image.createdAt,
    );
  return uuid;
}

/** `reference` is a UUID or `tag:<name>`. */
export function findImage(database: Database, reference: string): Image | undefined {
  const tag = reference.startsWith("tag:") ? reference.slice("tag:".length) : undefined;
  const row =
    tag === undefined
      ? database
          .query<ImageRow, [string]>("SELECT uuid, layer, config FROM images WHERE uuid = ?")
          .get(reference)
      : database
          .query<ImageRow, [string]>(
            "SELECT uuid, layer, config FROM images JOIN tags ON tags.image = images.uuid WHERE tag = ?",
          )
          .get(tag);
  return row === null ? undefined : { ...row, config: parseConfig(row.config) };
}

export function requireImage(database: Database, reference: string): Image {
  const image = findImage(database, reference);
  if (image === undefined) throw new RequestError(404, `there is no image ${reference}`);
  return image;
}

/** The image that was imported with this configuration before: the digest covers all of its content. */
export function findImportedImage(database: Database, configDigest: string): string | undefined {
  return database
    .query<{ uuid: string }, [string]>("SELECT uuid FROM images WHERE config_digest = ?")
    .get(configDigest)?.uuid;
}

/** A tag names one image; an image may have several tags. Setting a tag moves it. */
export function setTag(database: Database, tag: string, image: string): void {
  database
    .query<undefined, [string, string]>(
      "INSERT INTO tags (tag, image) VALUES (?, ?) ON CONFLICT (tag) DO UPDATE SET image = excluded.image",
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

export interface ImageFilter {
  tagPrefix: string | undefined;
  taggedOnly: boolean;
  uuid: string | undefined;
  /** Milliseconds since the epoch, both inclusive. */
  since: number | undefined;
  until: number | undefined;
  limit: number;
  offset: number;
}

/** An exact match of the tag leads, then the newest first. An image with several tags is listed once for each. */
export function listImages(database: Database, filter: ImageFilter): ImageRecord[] {
  const conditions = ["1"];
  const parameters: (string | number)[] = [];
  const where = (condition: string, ...values: (string | number)[]) => {
    conditions.push(condition);
    parameters.push(...values);
  };
  // Not LIKE: `_` stands in many tags.
  if (filter.tagPrefix !== undefined)
    where("substr(tag, 1, length(?)) = ?", filter.tagPrefix, filter.tagPrefix);
  if (filter.taggedOnly) where("tag IS NOT NULL");
  if (filter.uuid !== undefined) where("uuid = ?", filter.uuid);
  if (filter.since !== undefined) where("created_at >= ?", filter.since);
  if (filter.until !== undefined) where("created_at <= ?", filter.until);
  return database
    .query<RecordRow, (string | number)[]>(
      `SELECT uuid, tag, created_at, operation, config FROM images LEFT JOIN tags ON tags.image = images.uuid
       WHERE ${conditions.join(" AND ")} ORDER BY tag IS ? DESC, created_at DESC, images.rowid DESC, tag LIMIT ? OFFSET ?`,
    )
    .all(...parameters, filter.tagPrefix ?? "", filter.limit, filter.offset)
    .map(toRecord);
}

/** One image under one of its tags, or as an untagged one. */
export function describeImage(database: Database, uuid: string, tag: string | null): ImageRecord {
  const row = database
    .query<Omit<RecordRow, "tag">, [string]>(
      "SELECT uuid, created_at, operation, config FROM images WHERE uuid = ?",
    )
    .get(uuid);
  if (row === null) throw new RequestError(404, `there is no image ${uuid}`);
  return toRecord({ ...row, tag });
}

interface RecordRow {
  uuid: string;
  tag: string | null;
  created_at: number;
  operation: string | null;
  config: string;
}

function toRecord(row: RecordRow): ImageRecord {
  const { env, workingDirectory, user, onbuild, shell } = parseConfig(row.config);
  return {
    uuid: row.uuid,
    tag: row.tag,
    created_at: new Date(row.created_at).toISOString(),
    operation_uuid: row.operation,
    config: {
      env,
      working_dir: workingDirectory ?? null,
      user: user ?? null,
      onbuild: [...onbuild],
      shell: [...shell],
    },
  };
}

function parseConfig(text: string): ImageConfig {
  const config = JSON.parse(text) as Partial<ImageConfig>;
  const { env = {}, workingDirectory, user, onbuild = [], shell = [] } = config;
  return { env, workingDirectory, user, onbuild, shell };
}
