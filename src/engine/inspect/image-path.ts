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

/** Opens a view of the image that a request names. The caller disposes of it. */
export async function viewImage({ state, parameters }: Call): Promise<ImageView> {
  return openImageView(state, requireImage(state, parameters.uuid ?? ""));
}

/** Resolves an absolute path. Links are followed inside the image. */
export function findInView(view: ImageView, path: string): FoundPath {
  if (!path.startsWith("/") || path.includes("\0")) throw new RequestError(400, "path must be absolute");
  const found = resolveInView(view, path);
  const { stats } = found;
  if (stats === undefined) throw new RequestError(404, `there is no ${path} in image ${view.image}`);
  return { ...found, stats };
}

/** Resolves a path, and responds with 404 if nothing can be there: a client would retry after a 500. */
function resolveInView(view: ImageView, path: string): ResolvedPath {
  try {
    return resolveInRoot(view.root, path, { followLast: true });
  } catch (error) {
    if (error instanceof UnreachablePathError) throw new RequestError(404, error.message);
    throw error;
  }
}

/** Resolves the query's `path`. */
export function findPath(view: ImageView, url: URL): FoundPath {
  return findInView(view, readText(url, "path") ?? "/");
}
