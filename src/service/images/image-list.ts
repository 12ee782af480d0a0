/** `GET /v1/images`, and what follows from its lists. */
import { BoughError } from "../../errors.ts";
import { parseImageConfig } from "../../image/config.ts";
import { parseImageOrigin } from "../../image/history.ts";
import { wording } from "../../messages/wording.ts";
import { pastEndStatuses, unsupportedStatuses } from "../capabilities.ts";
import type { Query } from "../http/address.ts";
import { asId, asInteger, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, listIn, maxListed } from "../http/response.ts";
import { pollIntervals } from "../operations/polling.ts";
import type { SearchOptions } from "../operations/spawned.ts";
import type { ImageRecord } from "../wire/image.ts";
import { imageIdIn } from "../wire/reader/ids.ts";
import { tagsIn } from "../wire/reader/lists.ts";
import { isSameImage } from "./reference.ts";

interface ImageFilter {
  /** The beginning of a tag. */
  tag?: string | undefined;
  tagged?: boolean;
  uuid?: string;
  /** Only these images, on a service with the extension `image-uuids`. */
  uuids?: readonly string[];
  /** Time of creation: ISO 8601. */
  since?: string | undefined;
  until?: string | undefined;
  /** Asks for sizes, if the service can report them. */
  sizes?: boolean;
}

/** Images that lists have shown, by UUID; kept across processes. */
export interface SeenImages {
  has(uuid: string): boolean;
  add(uuid: string): unknown;
}

type IsWanted = (image: ImageRecord) => boolean;

export interface ImageList {
  /**
   * Returns all images that match the filter, and others if the service ignores it. Empty if it lacks `imageList`. With `isWanted`,
   * reads no further page after a short one once a wanted image is listed.
   */
  list(filter?: ImageFilter, isWanted?: IsWanted): Promise<ImageRecord[]>;
  /** A token without the permission to list images counts as a service without a list here: a build does not need one. */
  search(filter: ImageFilter, isWanted: IsWanted): Promise<ImageRecord[]>;
  /**
   * Returns the record of an image. `"gone"` only if a list of this service would show the image if it existed: some services
   * list only tagged images, ignore the filter, or show one page.
   */
  find(uuid: string): Promise<ImageRecord | "gone" | "unsupported">;
  onNewImage(): void;
}

export interface ImageListOptions extends SearchOptions {
  seen: SeenImages;
}

/** The limit of pages, enough for a service whose pages are small. */
const maxPages = 2000;
/** Statuses of a service that does not support one of the query's parameters, or its value. */
const refusesQuery = [400, 422];

/** Statuses of a service without a list of images, or without one for this token. */
const withoutList: Lacking = { lacking: [0, 400, 422, ...unsupportedStatuses], isOptional: true };
const required: Lacking = { lacking: unsupportedStatuses, isOptional: false };

interface Lacking {
  lacking: readonly number[];
  /** True if any other failure counts as a missing list, too, since a build needs none. */
  isOptional: boolean;
}

/** Variants of the query, the most complete first. If a service refuses one, the next is used from then on. */
const queryVariants: readonly { pageSize?: number; onlyTag?: true }[] = [
  { pageSize: 1000 },
  { pageSize: 100 },
  {},
  { onlyTag: true },
];

export function createImageList({
  transport,
  seen,
  capabilities,
  clock,
  signal,
}: ImageListOptions): ImageList {
  let variant = 0;
  /** `undefined`: not asked yet, or the service may have had no image to show when it was asked. */
  let anythingRequest: Promise<readonly ListedImage[]> | undefined;

  async function readPage(
    filter: ImageFilter,
    offset: number,
    { lacking, isOptional }: Lacking,
  ): Promise<ListedImage[]> {
    for (;;) {
      const tried = variant;
      const isLast = tried === queryVariants.length - 1;
      const answer = await transport.call({
        method: "GET",
        path: "/v1/images",
        query: queryOf(filter, offset, queryVariants[tried] ?? {}),
        repeatable: true,
        isOptional,
        handles: isLast ? lacking : [...lacking, ...refusesQuery],
        requires: aList("images", { optional: true }),
      });
      // Some services respond with an error past the end of a list.
      if (offset > 0 && answer.status !== 0 && [...lacking, ...pastEndStatuses].includes(answer.status))
        return [];
      if (lacking.includes(answer.status) && (isLast || !refusesQuery.includes(answer.status))) {
        capabilities.learn("imageList", false);
        return [];
      }
      if (!refusesQuery.includes(answer.status)) return readImages(answer.body);
      // Another request may have been refused at the same time.
      variant = Math.max(variant, tried + 1);
    }
  }

  async function read(
    filter: ImageFilter,
    isWanted: IsWanted | undefined,
    lacking: Lacking,
  ): Promise<ImageRecord[]> {
    if (capabilities.lacks("imageList")) return [];
    const sizes = filter.sizes === true && (await capabilities.extensions()).has("image-sizes");
    const images = new Map<string, ImageRecord>();
    let offset = 0;
    for (let pages = 0; pages < maxPages && images.size < maxListed; pages++) {
      const page = await readPage({ ...filter, sizes }, offset, lacking);
      const before = images.size;
      // An image with several tags is listed once for each.
      for (const image of page) images.set(`${image.uuid} ${image.tag}`, image);
      offset += page.length;
      const { pageSize = 1, onlyTag } = queryVariants[variant] ?? {};
      // A short page may not be the last: some services return fewer images per page than requested.
      const suffices =
        isWanted !== undefined && page.length < pageSize && [...images.values()].some(isWanted);
      // A server that ignores the offset returns the same page forever.
      if (suffices || images.size === before || onlyTag === true) return [...images.values()];
    }
    throw endless(transport.nameOf({ method: "GET", path: "/v1/images" }), images.size);
  }

  /** What a list without filters shows. Asked once, and again after there is a new image to show. */
  function listAnything(): Promise<readonly ListedImage[]> {
    anythingRequest ??= readPage({}, 0, withoutList).catch((error: unknown) => {
      anythingRequest = undefined;
      throw error;
    });
    return anythingRequest;
  }

  async function look(uuid: string): Promise<ImageRecord | "gone" | "unsupported"> {
    const isWanted = (image: ImageRecord) => isSameImage(image.uuid, uuid);
    const images = await read({ uuid }, isWanted, withoutList);
    if (capabilities.lacks("imageList")) return "unsupported";
    const found = images.find(isWanted);
    if (found !== undefined) {
      if (!seen.has(uuid)) seen.add(uuid);
      return found;
    }
    if ((await capabilities.extensions()).has("image-list")) return "gone";
    // A service that lists other images has ignored the filter. A list that is always empty proves nothing, either.
    if (images.length > 0) return "unsupported";
    const shown = await listAnything();
    const wouldShow = seen.has(uuid) || shown.some(({ isUntagged }) => isUntagged);
    return wouldShow && shown.length > 0 ? "gone" : "unsupported";
  }

  return {
    list: (filter = {}, isWanted) => read(filter, isWanted, required),
    search: (filter, isWanted) => read(filter, isWanted, withoutList),

    onNewImage() {
      anythingRequest = undefined;
    },

    async find(uuid) {
      for (const wait of pollIntervals()) {
        const found = await look(uuid);
        if (found !== "gone" || !transport.newIds.has(uuid)) return found;
        await clock.sleep(wait, signal);
      }
      throw new Error("unreachable: the waits never end");
    },
  };
}

function endless(call: string, images: number): BoughError {
  return new BoughError(`${call} does not end after ${images} images: bough reads at most ${maxListed}`, {
    hint: wording`${wording`List fewer, for instance with ${{ option: "tag" }}, --since and --until of ${{ command: "images" }}.`} Is this the address of an image service?`,
  });
}

function queryOf(
  { tag, tagged, uuid, uuids, since, until, sizes }: ImageFilter,
  offset: number,
  { pageSize, onlyTag }: (typeof queryVariants)[number],
): Query {
  if (onlyTag === true) return { tag };
  return {
    tag,
    tagged: tagged === true ? "1" : undefined,
    uuid: uuid ?? uuids?.join(","),
    since,
    until,
    sizes: sizes === true ? "1" : undefined,
    limit: pageSize?.toString(),
    offset: offset === 0 ? undefined : String(offset),
  };
}

/** An image in a list, once for each of its tags. */
interface ListedImage extends ImageRecord {
  /** True if the list states that the image has no tag, and does not just leave out tags. */
  isUntagged: boolean;
}

function readImages(body: unknown): ListedImage[] {
  return listIn(body, "images").flatMap((item) => {
    const record = asRecord(item);
    const uuid = imageIdIn(record);
    if (uuid === undefined || record === undefined) return [];
    const operation = asId(record?.operation_uuid);
    const size = asInteger(record?.size);
    const ownSize = asInteger(record?.own_size);
    const missing = { layers: asInteger(record?.missing_layers), bytes: asInteger(record?.missing_bytes) };
    const config = asRecord(record?.oci_config);
    const [identity, platform] = [asText(record?.identity), asText(record?.platform)];
    const tags = tagsIn(record);
    const isUntagged = tags?.length === 0;
    return (tags === undefined || isUntagged ? [null] : tags).map((tag) => ({
      uuid,
      tag,
      isUntagged,
      created_at: asText(record?.created_at) ?? "",
      ...(operation === undefined ? {} : { operation_uuid: operation }),
      ...(size === undefined ? {} : { size }),
      ...(ownSize === undefined ? {} : { own_size: ownSize }),
      ...(missing.layers === undefined ? {} : { missing_layers: missing.layers }),
      ...(missing.bytes === undefined ? {} : { missing_bytes: missing.bytes }),
      ...(config === undefined ? {} : { oci_config: parseImageConfig(config), ...originIn(record) }),
      ...(identity === undefined ? {} : { identity }),
      ...(platform === undefined ? {} : { platform }),
    }));
  });
}

function originIn(record: JsonRecord | undefined): Pick<ImageRecord, "oci_author" | "oci_history"> {
  const { author, history } = parseImageOrigin({ author: record?.oci_author, history: record?.oci_history });
  return {
    ...(author === undefined ? {} : { oci_author: author }),
    ...(history === undefined ? {} : { oci_history: history }),
  };
}
