import type { Stats } from "node:fs";
import { RequestError } from "../http/answers.ts";
import { readText } from "../http/query.ts";
import type { Call } from "../http/router.ts";
import { requireImage } from "../records/images.ts";
import { type ResolvedPath, resolveInRoot, UnreachablePathError } from "../sandbox/root/root-path.ts";
import { type ImageView, openImageView } from "./image-view.ts";

interface FoundPath extends ResolvedPath {
  stats: Stats;
}

/** The file system of the image that a request names, in a view that the caller disposes of. */
export async function viewImage({ state, parameters }: Call): Promise<ImageView> {
  return openImageView(state, requireImage(state, parameters.uuid ?? ""));
}

/** Where an absolute path leads, links followed inside the image. */
export function findInView(view: ImageView, path: string): FoundPath {
  if (!path.startsWith("/") || path.includes("\0")) throw new RequestError(400, "path must be absolute");
  const found = resolveInView(view, path);
  const { stats } = found;
  if (stats === undefined) throw new RequestError(404, `there is no ${path} in image ${view.image}`);
  return { ...found, stats };
}

/** What nothing can be at is not there: a 500 would be asked again, and come to the same. */
function resolveInView(view: ImageView, path: string): ResolvedPath {
  try {
    return resolveInRoot(view.root, path, { followLast: true });
  } catch (error) {
    if (error instanceof UnreachablePathError) throw new RequestError(404, error.message);
    throw error;
  }
}

/** What the query's `path` leads to. */
export function findPath(view: ImageView, url: URL): FoundPath {
  return findInView(view, readText(url, "path") ?? "/");
}
