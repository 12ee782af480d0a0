/** Records of images, as the API lists them. */
import type { Database } from "bun:sqlite";
import { isDigest } from "../../image/digest.ts";
import { machinePlatform } from "../../image/platform.ts";
import type { ImageRecord } from "../../service/wire/image.ts";
import type { ListFilter } from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import { absentBlobs, absentLayersOf } from "./absent-layers.ts";
import { findConfig, findDescription, type ImageDescription } from "./images.ts";
import { createImageSizes, createOwnLayers, layerSize } from "./layer-sizes.ts";
import type { Records } from "./records.ts";
import { createLayerCheck } from "./whole-layers.ts";

interface ImageFilter extends ListFilter {
  tagPrefix: string | undefined;
  taggedOnly: boolean;
  /** Lists only these images. If there are several, their configurations are left out. */
  uuids: readonly string[] | undefined;
  /** True to include sizes. */
  sizes: boolean;
}

/**
 * Lists images: an exact match of the tag first, then the newest first. An image with several tags is listed once for each. An
 * image that has lost a layer is left out. Only an image that the filter names has its configuration, which may be large: a
 * thousand of them are more than a client accepts.
 */
export function listImages(records: Records, filter: ImageFilter): ImageRecord[] {
  const { database } = records;
  const rows = selectImages(records, filter);
  const isWhole = createLayerCheck(records);
  const sizeOf = filter.sizes ? createImageSizes(records) : () => 0;
  const ownLayers = filter.sizes ? createOwnLayers(records) : () => [];
  const layerBytes = new Map<number, number>();
  const sizeOfLayer = (id: number) => {
    const bytes = layerBytes.get(id) ?? layerSize(records, id);
    layerBytes.set(id, bytes);
    return bytes;
  };
  const ownSizeOf = (row: { uuid: string; layer: number }) =>
    ownLayers(row).reduce((sum, id) => sum + sizeOfLayer(id), 0);
  const page: ImageRecord[] = [];
  let skipped = 0;
  for (const row of rows) {
    if (page.length >= filter.limit) break;
    const config = isWhole(row.layer) ? findConfig(database, row.uuid) : undefined;
    if (config === undefined) continue;
    if (skipped < filter.offset) skipped++;
    else
      page.push({
        ...toRecord(row, isNamed(row, filter) ? findDescription(database, row.uuid) : undefined),
        ...(filter.sizes ? { size: sizeOf(row.layer), own_size: ownSizeOf(row) } : {}),
        ...(filter.sizes ? describeAbsent(records, row.layer) : {}),
      });
  }
  return page;
}

function selectImages({ database }: Records, filter: ImageFilter): (RecordRow & { layer: number })[] {
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
  const source = isTagged ? "all_tags CROSS JOIN images" : "images LEFT JOIN all_tags";
  if (filter.uuids !== undefined)
    where("uuid IN (SELECT value FROM json_each(?))", JSON.stringify(filter.uuids));
  if (filter.since !== undefined) where("created_at >= ?", filter.since);
  if (filter.until !== undefined) where("created_at <= ?", filter.until);
  const tag = filter.tagPrefix ?? "";
  return database
    .query<RecordRow & { layer: number }, (string | number)[]>(
      `SELECT uuid, layer, tag, created_at, operation, config_digest, ${platformColumn} FROM ${source} ON image = uuid
       WHERE ${conditions.join(" AND ")} ORDER BY tag IS ? DESC, ifnull(tag IN (?, ?) AND all_tags.platform = '', FALSE) DESC, created_at DESC, images.rowid DESC, tag`,
    )
    .all(...parameters, tag, tag, `${tag}:latest`);
}

/** Returns how many of an image's layers are not here yet, and the bytes to fetch for them. */
function describeAbsent(
  records: Records,
  layer: number,
): Pick<ImageRecord, "missing_layers" | "missing_bytes"> {
  const blobs = absentLayersOf(records.database, layer).flatMap((id) => absentBlobs(records, id));
  if (blobs.length === 0) return {};
  const sizes = new Map(blobs.map(({ digest, size }) => [digest, size]));
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  return { missing_layers: blobs.length, missing_bytes: bytes };
}

/** True if the filter names this image by its UUID, or by its tag as in a FROM. */
function isNamed({ tag }: RecordRow, { uuids, tagPrefix }: ImageFilter): boolean {
  return (
    uuids?.length === 1 || (tagPrefix !== undefined && (tag === tagPrefix || tag === `${tagPrefix}:latest`))
  );
}

/** Returns the record of an image with one of its tags, or without a tag. */
export function describeImage(database: Database, uuid: string, tag: string | null): ImageRecord {
  const row = database
    .query<Omit<RecordRow, "tag">, [string]>(
      `SELECT uuid, created_at, operation, config_digest, ${platformColumn} FROM images WHERE uuid = ?`,
    )
    .get(uuid);
  const described = findDescription(database, uuid);
  if (row === null || described === undefined) throw new RequestError(404, `there is no image ${uuid}`);
  return toRecord({ ...row, tag }, described);
}

interface RecordRow {
  uuid: string;
  tag: string | null;
  created_at: number;
  operation: string | null;
  config_digest: string | null;
  platform: string | null;
}

/** A damaged record must not hide the image. */
const platformColumn = "CASE WHEN json_valid(origin) THEN origin ->> 'platform' END AS platform";

function toRecord(row: RecordRow, described: ImageDescription | undefined): ImageRecord {
  const { author, history } = described?.origin ?? {};
  return {
    uuid: row.uuid,
    tag: row.tag,
    created_at: new Date(row.created_at).toISOString(),
    operation_uuid: row.operation,
    platform: row.platform ?? machinePlatform(),
    ...(described === undefined ? {} : { oci_config: described.config, identity: identityOf(row) }),
    ...(author === undefined ? {} : { oci_author: author }),
    ...(history === undefined ? {} : { oci_history: history }),
  };
}

/** Returns an image's identity: the configuration's digest of an imported image, the UUID of one made here. */
function identityOf({ uuid, config_digest: digest, platform }: RecordRow): string {
  return `${platform ?? machinePlatform()} ${isDigest(digest) ? digest : uuid}`;
}
