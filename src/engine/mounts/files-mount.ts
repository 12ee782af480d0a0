import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createPace } from "../../pace.ts";
import { LayerTree } from "../copies/layer-tree.ts";
import { placeEntries } from "../copies/place-entries.ts";
import { placeFiles } from "../copies/place-files.ts";
import { giveAttributes, UpperTree } from "../copies/upper-tree.ts";
import type { FilesMount } from "./mount-spec.ts";

/** Makes the contents of a mount in `directory`, and returns the path to mount. */
export async function makeFiles(mount: FilesMount, directory: string, signal: AbortSignal): Promise<string> {
  const place = join(directory, "files");
  mkdirSync(place);
  chmodSync(place, 0o755);
  const pace = createPace(signal);
  // A tree without layers below it: it only contains links that are made here.
  const tree = new UpperTree(place, new LayerTree([], false));
  await placeEntries(tree, mount.entries, pace);
  const { lone } = mount;
  await placeFiles(tree, lone === undefined ? mount.files : [lone], pace);
  if (lone !== undefined) return join(place, lone.destination);
  giveAttributes(place, mount.root, mount.root);
  return place;
}
