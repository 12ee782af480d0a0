/** Reads images: their ids in records, and the tags in lists. */
import { asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { fieldOf, findAll, hasField, placesIn, readId, readIdOf, type Sought } from "./fields.ts";
import {
  bareImage,
  imageIdKeys,
  imageOfRecord,
  imageOfResult,
  importedImage,
  resultImage,
  storedFile,
  tagKeys,
} from "./tables.ts";

const readImageId = readIdOf(imageIdKeys);

/** Ids in a record that may be the image that an operation has made, the likely ones first. */
export interface ImageCandidates {
  /** Named as a result. It may be the image that the operation started from, if that was not changed. */
  results: readonly string[];
  /** Named only as an image, which may be the one that the operation started from. */
  others: readonly string[];
}

export function imagesIn(record: JsonRecord, operation: string | undefined): ImageCandidates {
  const results = findAll(record, [resultImage, imageOfResult], readImageId);
  // A service that has a key for the result and leaves it empty says that there is none.
  if (results.length > 0 || leavesEmpty(record, resultImage) || leavesEmpty(record, imageOfResult))
    return { results, others: [] };
  const bare = findAll(record, [bareImage], readId).filter((id) => id !== operation);
  const uuids = findAll({ ...record }, [{ places: [""], names: ["result"] }], readUuid);
  return { results: [...bare, ...uuids], others: findAll(record, [imageOfRecord], readImageId) };
}

function leavesEmpty(record: JsonRecord, { places, names }: Sought): boolean {
  return placesIn(record, places).some((place) => names.some((name) => hasField(place, name)));
}

function readUuid(value: unknown): string | undefined {
  const text = asText(value);
  return text !== undefined && /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text) ? text : undefined;
}

/** Returns the ids under an image's names in the response to an import. */
export function importedImagesIn(body: unknown): string[] {
  return findAll(body, importedImage, readImageId);
}

/** Returns the id of a stored file: in an object, the first of an array, or text that is nothing else. */
export function fileIdIn(body: unknown): string | undefined {
  if (typeof body === "string") return readId(body);
  if (Array.isArray(body) && typeof body[0] === "string") return readId(body[0]);
  const names = storedFile[0]?.names ?? [];
  return findAll(body, storedFile, readIdOf(names))[0];
}

/** Returns the SHA-256 in the record of a file. */
export function fileHashIn(body: unknown, names: readonly string[]): string | undefined {
  const places = storedFile.flatMap((sought) => sought.places);
  for (const place of placesIn(body, places)) {
    for (const name of names) {
      const text = asText(fieldOf(place, name))
        ?.toLowerCase()
        .replace(/^sha256:/, "");
      if (text !== undefined && /^[0-9a-f]{64}$/.test(text)) return text;
    }
  }
  return undefined;
}

/** Returns the tags of a listed image; `undefined` if its record says nothing about tags. */
export function tagsIn(record: JsonRecord): string[] | undefined {
  if (!tagKeys.some((key) => hasField(record, key))) return undefined;
  const name = asText(fieldOf(record, "name"));
  const own = ["tag", "tags", "repo_tags", "reference", "ref"].flatMap((key) =>
    readTags(fieldOf(record, key), name),
  );
  return own.length > 0 || name === undefined ? [...new Set(own)] : [name];
}

function readTags(value: unknown, name: string | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => readTags(item, name));
  const record = asRecord(value);
  if (record !== undefined) {
    const own = asText(record.name) ?? name;
    const tags = readTags(record.tag, own);
    return tags.length > 0 || own === undefined ? tags : [own];
  }
  const tag = asText(value);
  if (tag === undefined) return [];
  return [name === undefined || /[:/]/.test(tag) || tag === name ? tag : `${name}:${tag}`];
}
