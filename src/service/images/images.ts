/** Finding, importing and tagging images. */

import { NotFoundError } from "../http/errors.ts";
import { asInteger, asRecord, asText } from "../http/json.ts";
import type { ServiceResponse } from "../http/response.ts";
import type { Operations } from "../operations/operations.ts";
import { recordIn } from "../operations/record.ts";
import type { FoundImage, ImageImport, ImageService } from "../service.ts";
import { type ImageRecord, type ImportRequest, isTag } from "../wire/image.ts";
import { statusOf } from "../wire/reader/evidence.ts";
import { imageIdIn, importedImagesIn } from "../wire/reader/ids.ts";
import { isTagKey } from "../wire/reader/lists.ts";
import { isEnd, stageOf } from "../wire/reader/status.ts";
import { wordsOf } from "../wire/reader/words.ts";
import { chooseTagged, foundImage, platformsAmong } from "./found-image.ts";
import { createImageList, type ImageList, type ImageListOptions } from "./image-list.ts";
import { importError } from "./import-error.ts";
import { isUuid, withLatest } from "./reference.ts";
import { createUntagging, tagPathOf, type Untagging } from "./untag.ts";

export interface Images
  extends Untagging,
    Pick<
      ImageService,
      | "configureImage"
      | "declareImage"
      | "probeImage"
      | "findImage"
      | "platformsOf"
      | "hasImage"
      | "importImage"
      | "tagImage"
    > {
  listImages: ImageList["list"];
  /** Has to be called when the service has made an image. */
  onNewImage(): void;
  /**
   * Removes an image with all of its tags, and returns the number of freed bytes. Only with the extension `image-removal`.
   * Rejects with NotFoundError if the image is gone.
   */
  removeImage(uuid: string): Promise<RemovedImage>;
}

interface RemovedImage {
  freedBytes: number;
  /** Bytes of its layers that stay for builds, although no image with a tag needs them. */
  cachedBytes: number;
}

interface ImagesOptions extends ImageListOptions {
  operations: Operations;
}

export function createImages(options: ImagesOptions): Images {
  const { transport, capabilities } = options;
  const images = createImageList(options);

  async function tagImage(uuid: string, tag: string): Promise<void> {
    await transport.call({
      method: "PATCH",
      path: tagPathOf(uuid),
      json: { tag },
      repeatable: true,
      needs: () => [uuid],
    });
  }

  function inspected(record: ImageRecord): FoundImage {
    if (record.oci_config !== undefined) capabilities.learn("config", true);
    return foundImage(record);
  }

  async function findByTag(name: string, platform?: string): Promise<FoundImage | undefined | "unsupported"> {
    if (!isTag(name)) return undefined;
    // The filter is a prefix, so one list has both the name as written and the one with `:latest`.
    const complete = withLatest(name);
    const listed = await images.search({ tag: name }, ({ tag }) => tag === name || tag === complete);
    if (capabilities.lacks("imageList")) return "unsupported";
    const found = chooseTagged(listed, name, platform);
    return found && inspected(found);
  }

  return {
    listImages: images.list,
    onNewImage: images.onNewImage,

    async findImage(reference, platform) {
      if (!isUuid(reference)) return findByTag(reference.replace(/^tag:/, ""), platform);
      // Some services write UUIDs in capitals and know no other spelling.
      const lower = reference.toLowerCase();
      let found = await images.find(reference);
      if (found === "gone" && lower !== reference) found = await images.find(lower);
      if (found === "gone") return undefined;
      // A UUID can be used without a lookup: a later call reports a missing image.
      return found === "unsupported" ? { uuid: reference } : inspected(found);
    },

    async platformsOf(tag) {
      return platformsAmong(await images.list({ tagged: true }), tag);
    },

    async hasImage(uuid) {
      const found = await images.find(uuid);
      return found === "unsupported" ? found : found !== "gone";
    },

    importImage: (request) => importImage(request, options),

    tagImage,

    async removeImage(uuid) {
      const { body } = await transport.call({
        method: "DELETE",
        path: `/v1/images/${encodeURIComponent(uuid)}`,
        repeatable: true,
      });
      const { freed_bytes: freed, cached_bytes: cached } = asRecord(body) ?? {};
      return { freedBytes: asInteger(freed) ?? 0, cachedBytes: asInteger(cached) ?? 0 };
    },

    async declareImage(request) {
      const { body } = await transport.call({
        method: "POST",
        path: "/v1/images/remote",
        json: { ...request },
        // The service returns the same image for the same request.
        repeatable: true,
        requires: { what: "an image", isMet: ({ body }) => asText(asRecord(body)?.image) !== undefined },
      });
      const { image, missing } = asRecord(body) ?? {};
      return { image: asText(image) ?? "", missing: asInteger(missing) ?? 0 };
    },

    async probeImage(uuid) {
      const path = `/v1/images/${encodeURIComponent(uuid)}/probe`;
      const { body } = await transport.call({ method: "POST", path, repeatable: true });
      return asRecord(body)?.usable !== false;
    },

    async configureImage(uuid, config, origin) {
      const answer = await transport.call({
        method: "POST",
        path: `/v1/images/${encodeURIComponent(uuid)}/config`,
        json: { config, ...origin },
        // The service returns the same image for the same request.
        repeatable: true,
        requires: { what: "an image", isMet: (answer) => imageIn(answer) !== undefined },
      });
      return imageIn(answer) ?? uuid;
    },
    ...createUntagging(transport, images, tagImage),
  };
}

async function importImage(
  { url, tag, platform, timeoutSeconds, credentials, onProgress }: ImageImport,
  { transport, operations, signal, capabilities }: ImagesOptions,
): Promise<string> {
  const asNew = (uuid: string) => {
    transport.newIds.add(uuid);
    return uuid;
  };
  const request: ImportRequest = {
    registry: {
      url,
      ...(credentials && {
        credentials: { ...credentials, password: credentials.password.text() },
      }),
    },
    ...(tag === undefined ? {} : { tag }),
    timeout: timeoutSeconds,
    ...(platform === undefined ? {} : { platform }),
  };
  const path = "/v1/images/import";
  // Importing twice ends in the same image under the same tag.
  const optional = { names: ["timeout"] as const, isApi: capabilities.takesUserNumbers };
  const answer = await transport.fields.send(path, request, optional, (json) =>
    transport.call({
      method: "POST",
      path,
      json,
      repeatable: true,
      isStart: true,
      requires: {
        what: "an image or an operation",
        isMet: (answer) =>
          imageIn(answer) !== undefined || transport.operations.read(answer, path) !== undefined,
      },
    }),
  );
  const image = imageIn(answer);
  if (image !== undefined) return asNew(image);
  const operation = transport.operations.read(answer, path) ?? "";
  const named = tag === undefined ? [url] : [url, url.replace(/^docker:\/\//, ""), tag];
  const isNew = namesOperation(answer);
  operations.expect(operation, "image_import", timeoutSeconds, isNew, { named, isKept: true });
  try {
    return await followImport(operation, url, onProgress, operations);
  } catch (error) {
    if (signal.aborted) await operations.cancel(operation);
    // The specification's own server responds with the image: then the id is not an operation's.
    if (error instanceof NotFoundError && !namesOperation(answer)) return asNew(operation);
    throw error;
  }
}

async function followImport(
  operation: string,
  url: string,
  onProgress: ImageImport["onProgress"],
  operations: Operations,
): Promise<string> {
  const outcome = await (onProgress === undefined
    ? operations.poll(operation)
    : operations.follow(operation, undefined, { onProgress }));
  // A record of an import without another image may be that of the image itself.
  if (outcome.status === "SUCCESS") return outcome.image ?? operation;
  throw importError(url, outcome, false);
}

/** Returns the image's id if the response is an image: it has an image's fields and none of an operation's. */
function imageIn(answer: ServiceResponse): string | undefined {
  const record = recordIn(answer.body);
  if (namesOperation(answer) || answer.status === 202 || "kind" in record) return undefined;
  const status = statusOf(record);
  const stage = status === undefined ? undefined : stageOf(status);
  if (status !== undefined && (!isEnd(stage) || stage === "failed" || stage === "cancelled"))
    return undefined;
  const [named] = importedImagesIn(answer.body);
  if (named !== undefined) return named;
  const isImage =
    status === undefined
      ? "created_at" in record || Object.keys(record).some((key) => isTagKey(wordsOf(key)))
      : stage === "stored";
  return isImage ? imageIdIn(record) : undefined;
}

function namesOperation({ headers }: ServiceResponse): boolean {
  return headers.get("location")?.includes("/operations/") === true;
}
