import type { Database } from "bun:sqlite";
import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseImageOrigin } from "../../image/history.ts";
import { isNativePlatform } from "../../image/platform.ts";
import { sha256Of } from "../../sha256.ts";
import { RequestError } from "../http/responses.ts";
import { absentLayersOf, unreachableReason } from "./absent-layers.ts";
import { layerChain } from "./layers.ts";
import { parseObject, type Records } from "./records.ts";
import { createLayerCheck } from "./whole-layers.ts";

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

/**
 * Finds an image by UUID or `tag:<name>`. Returns `undefined` for an image that has lost a layer.
 *
 * @param isWhole returns true if a layer and all layers below it exist
 */
export function findImage(
  records: Records,
  reference: string,
  isWhole = createLayerCheck(records),
): Image | undefined {
  const { database } = records;
  const row = findRow(database, reference);
  const described = row === undefined ? undefined : findDescription(database, row.uuid);
  if (row === undefined || described === undefined || !isWhole(row.layer)) return undefined;
  return { ...row, ...described };
}

function findRow(database: Database, reference: string): Pick<Image, "uuid" | "layer"> | undefined {
  const tag = reference.startsWith("tag:") ? reference.slice("tag:".length) : undefined;
  const query =
    tag === undefined
      ? "SELECT uuid, layer FROM images WHERE uuid = ?"
      : "SELECT uuid, layer FROM images JOIN all_tags ON image = uuid WHERE tag = ? ORDER BY platform";
  return (
    database.query<{ uuid: string; layer: number }, [string]>(query).get(tag ?? reference.toLowerCase()) ??
    undefined
  );
}

export function requireImage(
  records: Records,
  reference: string,
  isWhole?: (layer: number) => boolean,
): Image {
  const image = findImage(records, reference, isWhole);
  if (image !== undefined) return image;
  const { database } = records;
  const row = findRow(database, reference);
  const reason = row && unreachableReason(records, absentLayersOf(database, row.layer));
  if (reason !== undefined) throw new UnusableImageError(reference, reason);
  throw new RequestError(404, `there is no image ${reference}`);
}

/** Throws unless there is a record of the image. The caller has checked its layers, which are removed only with the record. */
export function requireImageRecord(database: Database, uuid: string): void {
  if (findRow(database, uuid) === undefined) throw new RequestError(404, `there is no image ${uuid}`);
}

/** Thrown if a layer of the image can't be fetched. Clients take the image as lost, by the words "no longer". */
export class UnusableImageError extends RequestError {
  constructor(image: string, reason: string) {
    super(424, `image ${image} can no longer be used: ${reason}`);
  }
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
 * given image itself never changes, since others are built on it. Without an origin, it is the given image's.
 */
export function findOrAddConfigured(
  database: Database,
  { uuid, layer, config: before, origin: originBefore }: Image,
  { config, origin: given = originBefore }: { config: ImageConfig; origin: ImageOrigin | undefined },
  createdAt: number,
): string {
  const platform = given.platform ?? originBefore.platform;
  const origin = { ...given, ...(platform && { platform }) };
  if (Bun.deepEquals(before, config) && Bun.deepEquals(originBefore, origin)) return uuid;
  const text = JSON.stringify([layer, config, origin]);
  const configDigest = `configured:${sha256Of(text)}`;
  const known = findImportedImage(database, { layer, config, origin, configDigest });
  const { operation } = database
    .query<{ operation: string | null }, [string]>("SELECT operation FROM images WHERE uuid = ?")
    .get(uuid) ?? { operation: null };
  return known ?? addImage(database, { layer, config, origin, configDigest, operation, createdAt });
}

/** Returns an image's layers, the uppermost first. Throws if their records are gone. */
export function layersOf(
  database: Database,
  { uuid, layer }: Pick<Image, "uuid" | "layer">,
): readonly [number, ...number[]] {
  const [top, ...below] = layerChain(database, layer);
  if (top === undefined) throw new Error(`the layers of image ${uuid} are gone`);
  return [top, ...below];
}

/** Sets or moves a tag. A tag names one image for each platform; an image may have several tags. */
export function setTag(database: Database, tag: string, image: string): void {
  const { platform } = findDescription(database, image)?.origin ?? {};
  // An unchanged build writes nothing.
  const update = "DO UPDATE SET image = excluded.image WHERE image IS NOT excluded.image";
  if (platform === undefined || isNativePlatform(platform))
    database
      .query<undefined, [string, string]>(
        `INSERT INTO tags (tag, image) VALUES (?, ?) ON CONFLICT (tag) ${update}`,
      )
      .run(tag, image);
  else
    database
      .query<undefined, [string, string, string]>(
        `INSERT INTO foreign_tags (tag, platform, image) VALUES (?, ?, ?) ON CONFLICT (tag, platform) ${update}`,
      )
      .run(tag, platform, image);
}

/** Removes one tag of an image, or all. Returns false if there was none. */
export function removeTags(database: Database, image: string, tag: string | undefined): boolean {
  const changes = tagTables.map(
    (table) =>
      database
        .query<undefined, [string, string | null, string | null]>(
          `DELETE FROM ${table} WHERE image = ? AND (? IS NULL OR tag = ?)`,
        )
        .run(image, tag ?? null, tag ?? null).changes,
  );
  return changes.some((count) => count > 0);
}

/** The tables behind the view `all_tags`. */
export const tagTables = ["tags", "foreign_tags"] as const;

/** Returns the first of an image's tags. */
export function findTag(database: Database, image: string): string | null {
  const query = "SELECT tag FROM all_tags WHERE image = ? ORDER BY tag LIMIT 1";
  return database.query<{ tag: string }, [string]>(query).get(image)?.tag ?? null;
}

export type ImageDescription = Pick<Image, "config" | "origin">;

/** Reads an image's configuration and origin; `undefined` if its record is missing or damaged. */
export function findDescription(database: Database, uuid: string): ImageDescription | undefined {
  const config = findConfig(database, uuid);
  if (config === undefined) return undefined;
  const row = database
    .query<{ origin: string | null }, [string]>("SELECT origin FROM images WHERE uuid = ?")
    .get(uuid);
  return { config, origin: parseImageOrigin(parseObject(row?.origin ?? "{}") ?? {}) };
}

/** Reads an image's configuration; `undefined` if its record is missing or damaged. */
export function findConfig(database: Database, uuid: string): ImageConfig | undefined {
  const row = database
    .query<{ config: string }, [string]>("SELECT config FROM images WHERE uuid = ?")
    .get(uuid);
  const stored = row === null ? undefined : parseObject(row.config);
  return stored && parseImageConfig(stored);
}
