import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Image, layersOf } from "../records/images.ts";
import { layerDirectory } from "../records/layers.ts";
import { enterMountNamespace, startNamespace } from "../sandbox/root/mount-namespace.ts";
import type { EngineState } from "../state.ts";
import { endHelper } from "../system/helper.ts";

/** An image's file system, readable from outside the sandbox. It never changes. */
export interface ImageView extends Disposable {
  /** The image's UUID. */
  image: string;
  root: string;
}

export async function openImageView(state: EngineState, image: Image): Promise<ImageView> {
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
