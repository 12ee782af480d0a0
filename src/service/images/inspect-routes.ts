/** Detects whether a service can show files of images: `GET /v1/inspect/{uuid}/...`. */
import { posix } from "node:path";
import { type LearntCapabilities, unavailableStatuses } from "../capabilities.ts";
import { NotFoundError } from "../http/errors.ts";
import { asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, type ServiceResponse } from "../http/response.ts";
import type { Transport } from "../http/transport.ts";
import { meansMissingImage } from "../operations/outcome.ts";
import type { ImageService } from "../service.ts";
import {
  fileName,
  fileType,
  type ImageEntry,
  type ImageInspector,
  lostImage,
  noSuchFile,
  type PathType,
} from "./image-file.ts";

/** Statuses of a missing route; 0 stands for any other response. 404 is left out, because it may also mean a missing path. */
const noSuchRoute = [0, ...unavailableStatuses].filter((status) => status !== 404);

/** Matches an error message that does not say whether the path or the image is missing. */
const isWithoutReason = /^\s*(404)?[\s:]*(not found)?\W*$/i;

/** Statuses for a path whose type a route does not serve. */
export const wrongType = [400, 409, 422];

/** Thrown if the service can't show files of images. A build continues as if the file were missing. */
export class NoInspectError extends NotFoundError {}

export interface InspectRoutes {
  /** True if the routes exist. Rejects with NotFoundError if the image is missing. */
  exist(image: string): Promise<boolean>;
  /**
   * True if a response may be a file's content. A service without these routes may answer every path with a page, or with an object:
   * where a file has such a type, a list proves that it is one.
   */
  serveFile(image: string, headers: Headers): Promise<boolean>;
  /**
   * Sends a request about a path of the image. If the service says that it has no such image, and the image is new, sends the
   * request again once the service knows it.
   */
  ask(image: string, send: () => Promise<ServiceResponse>): Promise<ServiceResponse>;
  /** Returns the error for a path of an image that the service does not find. */
  explainMissing(image: string, path: string): Promise<NotFoundError>;
}

/** `hasImage` checks whether the service still has the image, if it can be asked. */
export function createInspectRoutes(
  transport: Transport,
  capabilities: LearntCapabilities,
  hasImage: ImageService["hasImage"],
): InspectRoutes {
  function listRoot(image: string, handles: readonly number[]): Promise<ServiceResponse> {
    return transport.call({
      method: "GET",
      path: `/v1/inspect/${encodeURIComponent(image)}/list`,
      query: { path: "/" },
      repeatable: true,
      needs: () => [image],
      handles,
      isOptional: !capabilities.has("inspect"),
      requires: aList("files"),
    });
  }

  /** Asks for the root, which every image has, to tell a missing route from a missing path. */
  async function exist(image: string): Promise<boolean> {
    if (capabilities.has("inspect")) return true;
    if (capabilities.lacks("inspect")) return false;
    const isNew = transport.newIds.has(image);
    const refusals = [404, ...wrongType, ...noSuchRoute];
    let { status, refusal = "" } = await listRoot(image, refusals);
    if (status === 404 && isNew && meansMissingImage(refusal)) status = await statusOnceKnown(image);
    const isThere = status === 200 || (await hasImage(image));
    if (isThere === false) throw lostImage(image);
    // The service may have learnt of the image only after the first request.
    if (status === 404 && isNew && isThere === true) ({ status } = await listRoot(image, refusals));
    if (status === 200) {
      capabilities.learn("inspect", true);
      return true;
    }
    // A list that does not show this image leaves open whether the image is missing or the route.
    if (isThere === true || noSuchRoute.includes(status) || capabilities.lacks("imageList"))
      capabilities.learn("inspect", false);
    return false;
  }

  /** Asks for the root of a new image until the service knows the image. Returns 404 if it does not in time. */
  async function statusOnceKnown(image: string): Promise<number> {
    try {
      return (await listRoot(image, [...wrongType, ...noSuchRoute])).status;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      return 404;
    }
  }

  return {
    exist,

    async serveFile(image, headers) {
      const type = headers.get("content-type") ?? "";
      return /^(text\/|application\/(\w+\+)?json)/i.test(type) ? await exist(image) : true;
    },

    async ask(image, send) {
      const answer = await send();
      const { status, refusal = "" } = answer;
      const mayMeanImage = meansMissingImage(refusal) || isWithoutReason.test(refusal);
      const isUnknown = status === 404 && mayMeanImage && transport.newIds.has(image);
      if (!isUnknown || !(await exist(image))) return answer;
      await listRoot(image, wrongType);
      return send();
    },

    async explainMissing(image, path) {
      // Every image has a root.
      if (await exist(image)) return path === "/" ? lostImage(image) : noSuchFile(image, path);
      return capabilities.lacks("inspect")
        ? lacksRoute("list")
        : new NoInspectError(`image ${image} is gone, or the service cannot show files of images`);
    },
  };
}

export function lacksRoute(route: string): NoInspectError {
  return new NoInspectError(
    `the service cannot show files of images: it does not support GET /v1/inspect/{image_uuid}/${route}`,
    { hint: "A command in the image can show them, such as `ls` or `cat`." },
  );
}

export function createInspector(
  transport: Transport,
  capabilities: LearntCapabilities,
  routes: InspectRoutes,
): ImageInspector {
  async function ask(image: string, route: "list" | "download", path: string): Promise<ServiceResponse> {
    const call = {
      method: "GET",
      path: `/v1/inspect/${encodeURIComponent(image)}/${route}`,
      query: { path },
      repeatable: true,
      handles: [404, ...noSuchRoute, ...wrongType],
      // A route that exists has to work: its response decides what a COPY does.
      isOptional: !capabilities.has("inspect"),
      ...(route === "download" ? { expects: "bytes" as const } : { requires: aList("files") }),
    } as const;
    const answer = await routes.ask(image, () => transport.call(call));
    if (route === "list" && answer.status === 200) capabilities.learn("inspect", true);
    return answer;
  }

  /**
   * A directory's list has its entries. The list of anything else has only that thing, by its full path or by its name alone. A
   * directory with a single file of the directory's own name looks the same; the list of its parent tells them apart.
   */
  async function typeInList(image: string, list: JsonRecord | undefined, path: string): Promise<PathType> {
    const [only, ...others] = filesIn(list);
    const resolved = asText(list?.path) ?? path;
    const name = asText(only?.path);
    if (only === undefined || others.length > 0 || only.is_dir === true) return "directory";
    if (name === path || name === resolved) return fileType(only);
    if (name !== posix.basename(resolved)) return "directory";
    const above = await ask(image, "list", posix.dirname(resolved));
    const itself = filesIn(asRecord(above.body)).find((file) => file.path === name);
    return itself === undefined || itself.is_dir === true ? "directory" : fileType(itself);
  }

  return {
    async pathType(image, path) {
      if (capabilities.lacks("inspect")) return "unsupported";
      const { status, body } = await ask(image, "list", path);
      if (status === 200) return typeInList(image, asRecord(body), path);
      if (noSuchRoute.includes(status)) capabilities.learn("inspect", false);
      if (!(await routes.exist(image))) return "unsupported";
      // Every image has a root.
      if (status === 404 && path === "/") throw lostImage(image);
      return status === 404 ? undefined : "file";
    },

    async listEntries(image, directory) {
      const { status, body } = await ask(image, "list", directory);
      if (status !== 200) return undefined;
      const entries = filesIn(asRecord(body)).map((file): [string, ImageEntry] => [
        fileName(file),
        { type: fileType(file), target: asText(file.symlink_to) },
      ]);
      return new Map(entries);
    },

    async readFile(image, path) {
      const { status, body, headers } = await ask(image, "download", path);
      if (status === 200 && !(await routes.serveFile(image, headers))) return "unsupported";
      if (status === 200) return body instanceof Uint8Array ? body : new Uint8Array();
      return noSuchRoute.includes(status) || !(await routes.exist(image)) ? "unsupported" : undefined;
    },
  };
}

function filesIn(list: JsonRecord | undefined): JsonRecord[] {
  const files = Array.isArray(list?.files) ? list.files : [];
  return files.map(asRecord).filter((file) => file !== undefined);
}
