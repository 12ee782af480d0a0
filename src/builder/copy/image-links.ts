import { posix } from "node:path";
import type { ImageFacts } from "../cache/image-facts.ts";
import type { StageState } from "../state/state.ts";

/**
 * Finds links that an image has in the place of directories below a destination, such as `/lib`. Looks from the top down, only
 * below directories that the image has.
 *
 * @param directories absolute paths, each after the one that contains it
 */
export async function* linksInPlaceOf(
  directories: Iterable<string>,
  destination: string,
  { layer, staged }: Pick<StageState, "layer" | "staged">,
  facts: ImageFacts,
): AsyncGenerator<string, undefined> {
  const shared = new Set([destination]);
  let isThere: boolean | undefined;
  for (const path of directories) {
    if (staged.has(path) || !shared.has(posix.dirname(path))) continue;
    // Most copies have no directory in them and ask nothing.
    isThere ??= destination === "/" || (await facts.isDirectory(layer.image, destination));
    if (!isThere) return;
    const type = await facts.typeAt(layer.image, path);
    if (type === "symlink") yield path;
    if (type === "directory") shared.add(path);
  }
}
