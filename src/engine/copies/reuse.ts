import { lstatSync } from "node:fs";
import type { Pace } from "../../pace.ts";
import { findImage } from "../records/images.ts";
import { findFileDigests, type LayerFileDigests } from "../records/layer-file-digests.ts";
import { layerDirectory } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import { type EarlierLayer, FileDigests } from "./file-digests.ts";
import { LinkPolicies, linkedFiles } from "./linker.ts";
import type { FileReuse } from "./place-files.ts";

interface Reuse extends FileReuse {
  fileDigests(): LayerFileDigests;
}

/**
 * Finds the unchanged files in the version of a layer before this one: a hard link takes a quarter of a copy's time. No layer ever
 * changes, and a command that writes to such a file gets a copy of its own from overlayfs. A command can notice a hard link only by the
 * file's number of links, which overlayfs shows as it is in the layer.
 *
 * @param image the image of the version before
 * @param below the layers below the new one
 */
export async function createReuse(
  state: EngineState,
  image: string | undefined,
  below: readonly number[],
  pace: Pace,
): Promise<Reuse> {
  const earlier = image === undefined ? undefined : findEarlier(state, image);
  const files = new FileDigests(earlier);
  const policies = new LinkPolicies({
    isAllowed: true,
    shared: new Set(below),
    taken: earlier === undefined ? new Set() : await linkedFiles(state, below, pace),
    isSingle: true,
  });
  const policy = policies.forSource();
  let linkedBytes = 0;
  return {
    find(inside, file) {
      const path = files.add(inside, file);
      if (path === undefined || earlier === undefined) return undefined;
      if (!policy.allows({ layer: earlier.id }, () => lstatSync(path, { throwIfNoEntry: false })))
        return undefined;
      linkedBytes += file.size;
      return path;
    },
    invalidate: () => files.invalidate(),
    fileDigests() {
      const isLinked = earlier !== undefined && policies.linkedLayers.size > 0;
      return {
        bytes: files.bytes(),
        digests: files.digests(),
        earlier: isLinked ? { id: earlier.id, linkedBytes } : undefined,
      };
    },
  };
}

function findEarlier(state: EngineState, uuid: string): EarlierLayer | undefined {
  const found = findFileDigests(state.database, uuid);
  // The image's layers are checked only if one of them has many files.
  if (found === undefined || findImage(state, uuid) === undefined) return undefined;
  return { ...found, directory: layerDirectory(state.layout, found.id) };
}
