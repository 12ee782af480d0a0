import { rmSync, type Stats } from "node:fs";
import { join } from "node:path";
import { endHelper } from "../../programs/helper.ts";
import { openLayerTree } from "../copies/fill-upper.ts";
import { RequestError } from "../http/responses.ts";
import { type Image, layersOf } from "../records/images.ts";
import { lookupDirectory } from "../records/layer-listings.ts";
import { layerDirectory } from "../records/layers.ts";
import type { LayerTree } from "../sandbox/root/layer-tree.ts";
import { enterMountNamespace, startNamespace } from "../sandbox/root/mount-namespace.ts";
import {
  type Locate,
  type ResolvedPath,
  resolveInRoot,
  UnreachablePathError,
} from "../sandbox/root/root-path.ts";
import type { EngineState } from "../state.ts";

type Viewed = Pick<ImageView, "image" | "root"> & { locate?: Locate };

export interface ExistingPath extends ResolvedPath {
  stats: Stats;
}

/**
 * An image's file system, read from its layers without a mount, which takes a fraction of the time: enough to look up single files and
 * directories.
 */
export interface UnmountedView extends Pick<ImageView, "image" | "root"> {
  tree: LayerTree;
  locate: Locate;
}

/** Opens a view of an image whose layers, or for looking up paths their listings, are here. */
export function viewLayers(state: EngineState, image: Image): UnmountedView {
  const tree = openLayerTree(state, image);
  const root = lookupDirectory(state, layersOf(state.database, image)[0]);
  const locate: Locate = (names) => {
    const name = names.at(-1);
    if (name === undefined) return root;
    const found = tree.find(tree.enterPath(names.slice(0, -1).join("/")), name);
    return found && String(found.path);
  };
  return { image: image.uuid, root, tree, locate };
}

/** Resolves an absolute path. Links are followed inside the image. */
export function findInView(view: Viewed, path: string): ExistingPath {
  if (!path.startsWith("/") || path.includes("\0")) throw new RequestError(400, "path must be absolute");
  const found = resolveInView(view, path);
  const { stats } = found;
  if (stats === undefined) throw new RequestError(404, `there is no ${path} in image ${view.image}`);
  return { ...found, stats };
}

/** Looks up a path of an image whose layers are here. Throws a RequestError (404) if it does not exist. */
export function findInImage(
  state: EngineState,
  image: Image,
  path: string,
): { view: UnmountedView; found: ExistingPath } {
  const view = viewLayers(state, image);
  return { view, found: findInView(view, path) };
}

/** Resolves a path. Throws a RequestError (404) if nothing can be there, since a client would retry after a 500. */
function resolveInView({ root, locate }: Viewed, path: string): ResolvedPath {
  try {
    return resolveInRoot(root, path, { followLast: true, locate });
  } catch (error) {
    if (error instanceof UnreachablePathError) throw new RequestError(404, error.message);
    throw error;
  }
}

/** An image's file system, readable from outside the sandbox. It never changes. */
interface ImageView extends Disposable {
  /** The image's UUID. */
  image: string;
  root: string;
}

/** Opens a view of an image whose layers are here. The caller disposes of it. */
export async function viewImage(state: EngineState, image: Image): Promise<ImageView> {
  const { layout, environment, inUserNamespace, clock } = state;
  const layers = layersOf(state.database, image);
  // A single layer needs no overlay mount.
  if (layers.length === 1)
    return { image: image.uuid, root: layerDirectory(layout, layers[0]), [Symbol.dispose]() {} };
  const file = join(layout.scratch, crypto.randomUUID());
  const helper = startNamespace(layout, environment, { forCommand: false });
  const view = { layers, inUserNamespace, clock, file };
  try {
    const { root } = await enterMountNamespace(layout, environment, helper, view);
    return { image: image.uuid, root, [Symbol.dispose]: () => endHelper(helper) };
  } catch (error) {
    endHelper(helper);
    throw error;
  } finally {
    rmSync(file, { force: true });
  }
}
