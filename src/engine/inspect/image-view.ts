import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Image } from "../records/images.ts";
import { layerChain, layerDirectory } from "../records/layers.ts";
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
  const [top, ...below] = layerChain(state.database, image.layer);
  if (top === undefined) throw new Error(`the layers of image ${image.uuid} are gone`);
  // A single layer needs no overlay mount.
  if (below.length === 0)
    return { image: image.uuid, root: layerDirectory(layout, top), [Symbol.dispose]() {} };
  const layers = [top, ...below];
  const file = join(layout.scratch, crypto.randomUUID());
  const helper = startNamespace(layout, environment, { forCommand: false });
  const view = { layers, inUserNamespace, clock, file };
  const namespace = await enterMountNamespace(layout, environment, helper, view).finally(() =>
    rmSync(file, { force: true }),
  );
  return { image: image.uuid, root: namespace.root, [Symbol.dispose]: () => endHelper(namespace.process) };
}
