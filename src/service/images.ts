/** Finding, importing and tagging images. */
import { BoughError } from "../errors.ts";
import type { Answer } from "./answer.ts";
import { NotFoundError } from "./errors.ts";
import { asRecord, asText } from "./json.ts";
import type { Operations } from "./operations.ts";
import { isUuid } from "./reference.ts";
import { aList, listIn } from "./requirements.ts";
import type { FoundImage, ImageImport, ImageService } from "./service.ts";
import { operationIdOf } from "./spawn.ts";
import { isTag, withLatest } from "./tag.ts";
import type { Transport } from "./transport.ts";
import type { ImageConfiguration, ImageRecord, ImportRequest } from "./types.ts";

export interface ImageFilter {
  /** The beginning of a tag. */
  tag?: string;
  tagged?: boolean;
  uuid?: string;
  /** When it was made: ISO 8601. */
  since?: string;
  until?: string;
}

export interface Images extends Pick<ImageService, "findImage" | "hasImage" | "importImage" | "tagImage"> {
  /** All images that the filter lets through; `"unknowable"` where the service has no such list. */
  listImages(filter?: ImageFilter): Promise<ImageRecord[] | "unknowable">;
  /** Takes all tags away from an image. Rejects with NotFoundError where the image is gone. */
  untagImage(uuid: string): Promise<void>;
}

export interface ImagesOptions {
  transport: Transport;
  operations: Operations;
  signal: AbortSignal;
}

const pageSize = 1000;
const noSuchRoute = [404, 405, 501];

export function createImages({ transport, operations, signal }: ImagesOptions): Images {
  /** A service that has no such list now has none for the next question. */
  let isListed = true;

  async function listImages(filter: ImageFilter = {}): Promise<ImageRecord[] | "unknowable"> {
    if (!isListed) return "unknowable";
    const images = new Map<string, ImageRecord>();
    for (let offset = 0; ; offset += pageSize) {
      const answer = await transport.call({
        method: "GET",
        path: "/v1/images",
        query: {
          ...(filter.tag === undefined ? {} : { tag: filter.tag }),
          ...(filter.tagged === true ? { tagged: "1" } : {}),
          ...(filter.uuid === undefined ? {} : { uuid: filter.uuid }),
          ...(filter.since === undefined ? {} : { since: filter.since }),
          ...(filter.until === undefined ? {} : { until: filter.until }),
          limit: String(pageSize),
          ...(offset === 0 ? {} : { offset: String(offset) }),
        },
        repeatable: true,
        handles: noSuchRoute,
        requires: aList("images"),
      });
      if (noSuchRoute.includes(answer.status)) {
        isListed = false;
        return "unknowable";
      }
      const page = readImages(answer.body);
      const before = images.size;
      // An image with several tags is listed once for each.
      for (const image of page) images.set(`${image.uuid} ${image.tag}`, image);
      // A server that knows no offset answers the same page for ever.
      if (page.length < pageSize || images.size === before) return [...images.values()];
    }
  }

  async function findByTag(name: string): Promise<FoundImage | undefined | "unknowable"> {
    if (!isTag(name)) return undefined;
    // The filter is a prefix, so one list answers for the name as written and for the one with `:latest`.
    const images = await listImages({ tag: name });
    if (images === "unknowable") return images;
    const complete = withLatest(name);
    const found =
      images.find((image) => image.tag === name) ?? images.find((image) => image.tag === complete);
    return found && foundImage(found);
  }

  async function followImport(
    operation: string,
    url: string,
    onProgress: ImageImport["onProgress"],
  ): Promise<string> {
    const outcome = await (onProgress === undefined
      ? operations.poll(operation)
      : operations.follow(operation, undefined, { onProgress }));
    if (outcome.status === "SUCCESS" && outcome.image !== undefined) return outcome.image;
    const reason = outcome.error ?? (outcome.stderr.text.trim() || `the service says ${outcome.status}`);
    throw new BoughError(`importing ${url} failed: ${reason}`, {
      hint: "Check the reference, and that the service can reach its registry.",
    });
  }

  return {
    listImages,

    async findImage(reference) {
      if (!isUuid(reference)) return findByTag(reference.replace(/^tag:/, ""));
      const uuid = reference.toLowerCase();
      const images = await listImages({ uuid });
      // It names an image of the service directly: whoever uses it will see whether it is there.
      if (images === "unknowable") return { uuid };
      const found = images.find((image) => image.uuid.toLowerCase() === uuid);
      return found && { ...foundImage(found), uuid };
    },

    async hasImage(uuid) {
      const images = await listImages({ uuid });
      return images === "unknowable" ? images : images.some((image) => image.uuid === uuid);
    },

    async importImage({ url, tag, timeoutSeconds, credentials, onProgress }) {
      const json: ImportRequest = {
        registry: { url, ...(credentials === undefined ? {} : { credentials }) },
        ...(tag === undefined ? {} : { tag }),
        timeout: timeoutSeconds,
      };
      // Importing twice ends in the same image under the same tag.
      const answer = await transport.call({
        method: "POST",
        path: "/v1/images/import",
        json,
        repeatable: true,
        requires: {
          what: "an image or an operation",
          isMet: (answer) => imageIn(answer) !== undefined || operationIdOf(answer) !== undefined,
        },
      });
      const image = imageIn(answer);
      if (image !== undefined) return image;
      const operation = operationIdOf(answer) ?? "";
      operations.expect(operation, "image_import", timeoutSeconds);
      try {
        return await followImport(operation, url, onProgress);
      } catch (error) {
        if (signal.aborted) await operations.cancel(operation);
        // The spec's own server answers with the image: the id is no operation's.
        if (error instanceof NotFoundError && !namesOperation(answer)) return operation;
        throw error;
      }
    },

    async tagImage(uuid, tag) {
      await transport.call({
        method: "PATCH",
        path: `/v1/images/${encodeURIComponent(uuid)}/tag`,
        json: { tag },
        repeatable: true,
      });
    },

    async untagImage(uuid) {
      await transport.call({
        method: "DELETE",
        path: `/v1/images/${encodeURIComponent(uuid)}/tag`,
        repeatable: true,
      });
    },
  };
}

/** The image's id where the answer to an import is an image: it has an image's fields and none of an operation's. */
function imageIn(answer: Answer): string | undefined {
  const record = asRecord(answer.body);
  if (record === undefined || namesOperation(answer)) return undefined;
  if ("status" in record || "kind" in record) return undefined;
  const nested = asText(record.image) ?? asText(asRecord(record.image)?.uuid) ?? asText(record.image_uuid);
  if (nested !== undefined) return nested;
  return "tag" in record || "created_at" in record ? asText(record.uuid) : undefined;
}

function namesOperation({ headers }: Answer): boolean {
  return headers.get("location")?.includes("/operations/") === true;
}

function foundImage({ uuid, config }: ImageRecord): FoundImage {
  return { uuid, ...(config === undefined ? {} : { config }) };
}

function readImages(body: unknown): ImageRecord[] {
  return listIn(body, "images").flatMap((item) => {
    const record = asRecord(item);
    const uuid = asText(record?.uuid);
    if (uuid === undefined) return [];
    const operation = asText(record?.operation_uuid);
    const config = readConfiguration(record?.config);
    return [
      {
        uuid,
        tag: asText(record?.tag) ?? null,
        created_at: asText(record?.created_at) ?? "",
        ...(operation === undefined ? {} : { operation_uuid: operation }),
        ...(config === undefined ? {} : { config }),
      },
    ];
  });
}

function readConfiguration(value: unknown): ImageConfiguration | undefined {
  const record = asRecord(value);
  if (record === undefined) return undefined;
  const variables = Object.entries(asRecord(record.env) ?? {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return {
    env: Object.fromEntries(variables),
    working_dir: asText(record.working_dir) ?? null,
    user: asText(record.user) ?? null,
    onbuild: textsIn(record.onbuild),
    shell: textsIn(record.shell),
  };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
