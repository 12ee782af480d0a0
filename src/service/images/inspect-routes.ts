/** Finding out whether a service can show files of images: `GET /v1/inspect/{uuid}/...`. */
import { type LearntCapabilities, unavailableStatuses } from "../capabilities.ts";
import { NotFoundError } from "../http/errors.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageService } from "../service.ts";

/** Statuses of a missing route. 404 is left out, because it may also mean a missing path. */
export const noSuchRoute = unavailableStatuses.filter((status) => status !== 404);

/** Statuses for a path whose type a route does not serve. */
export const wrongType = [400, 409, 422];

/** The service can't show files of images. A build that has looked for a file goes on as if the file were missing. */
export class NoInspectError extends NotFoundError {}

export interface InspectRoutes {
  /** True if the routes exist. Rejects with NotFoundError if the image is missing. */
  exist(image: string): Promise<boolean>;
  /** Returns the error for a path of an image that the service does not find. */
  explainMissing(image: string, path: string): Promise<NotFoundError>;
}

/** `hasImage` checks whether the service still has the image, if it can be asked. */
export function createInspectRoutes(
  transport: Transport,
  capabilities: LearntCapabilities,
  hasImage: ImageService["hasImage"],
): InspectRoutes {
  /** Asks for the root, which every image has, to tell a missing route from a missing path. */
  async function exist(image: string): Promise<boolean> {
    if (capabilities.has("inspect")) return true;
    if (capabilities.lacks("inspect")) return false;
    const { status } = await transport.call({
      method: "GET",
      path: `/v1/inspect/${encodeURIComponent(image)}/list`,
      query: { path: "/" },
      repeatable: true,
      handles: [404, ...wrongType, ...noSuchRoute],
    });
    if (status === 200) {
      capabilities.learn("inspect", true);
      return true;
    }
    const isThere = await hasImage(image);
    if (isThere === false) throw lost(image);
    // A list that does not show this image leaves open whether the image is missing or the route.
    if (isThere === true || noSuchRoute.includes(status) || capabilities.lacks("imageList"))
      capabilities.learn("inspect", false);
    return false;
  }

  return {
    exist,

    async explainMissing(image, path) {
      // Every image has a root.
      if (await exist(image)) return path === "/" ? lost(image) : noSuchFile(image, path);
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

export function lost(image: string): NotFoundError {
  return new NotFoundError(`image ${image} is gone`);
}

export function noSuchFile(image: string, path: string): NotFoundError {
  return new NotFoundError(`${path}: there is no such file in image ${image}`);
}
