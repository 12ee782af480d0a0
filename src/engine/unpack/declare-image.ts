import { join } from "node:path";
import { inTransaction } from "../../database.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import type { LayerTable } from "../../image/layer-table.ts";
import { sha256Of } from "../../sha256.ts";
import type { Layout } from "../layout.ts";
import {
  type AbsentBlob,
  absentLayersOf,
  addBlobSources,
  isAbsent,
  unreachableReason,
} from "../records/absent-layers.ts";
import { addImage, findImportedImage, setTag, UnusableImageError } from "../records/images.ts";
import { recordTable } from "../records/layer-listings.ts";
import { noMarks } from "../records/layer-marks.ts";
import { addAbsentLayer, addLayer, clearContent, type LayerRecord, maxDepth } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import { makeDirectory } from "../system/owner-and-mode.ts";
import { type LayerGroup, planLayers } from "./layer-plan.ts";

/** The blob of a layer, and the time at which the layer was made, if it is known. */
export interface DeclaredLayer extends AbsentBlob {
  createdAt: number | undefined;
  /** The position of the blob's table of contents, if it is known. */
  table: LayerTable | undefined;
}

/** An image whose layers can be fetched when they are needed. */
interface DeclaredImage {
  config: ImageConfig;
  origin: ImageOrigin;
  /** The digest of the image's configuration, if the client has sent it: the image is then the same as an imported one. */
  configDigest: string | undefined;
  /** The lowest first. */
  layers: readonly DeclaredLayer[];
  tag: string | undefined;
}

/**
 * Records an image without fetching anything. Layers that the engine has are used, the others are absent. The same image always
 * gets the same UUID. Throws an UnusableImageError if one of its layers could not be fetched a moment ago.
 */
export function declareImage(
  state: EngineState,
  { config, origin, layers, tag, configDigest: given }: DeclaredImage,
): { image: string; missing: number } {
  const { database, clock } = state;
  const names = layers.map(nameOf);
  const createdAt = clock.now();
  return inTransaction(database, () => {
    // The layers are a build's: they are not merged, unless they are more than an image of this engine can have.
    const groups = planLayers(state, names, names.length <= maxDepth ? maxDepth : undefined);
    const layer = addMissing(state, groups, layers, createdAt);
    const absent = absentLayersOf(database, layer);
    const reason = unreachableReason(state, absent);
    if (reason !== undefined) throw new UnusableImageError("as declared", reason);
    const isListed = layers.some(({ table }) => table !== undefined);
    const configDigest =
      (isListed ? undefined : given) ??
      `declared:${sha256Of(JSON.stringify([groups.at(-1)?.content, config, origin]))}`;
    const image =
      findImportedImage(database, { layer, config, origin, configDigest }) ??
      addImage(database, { layer, config, origin, configDigest, operation: null, createdAt });
    if (tag !== undefined) setTag(database, tag, image);
    return { image, missing: absent.length };
  });
}

/**
 * Returns the name that identifies a layer. A layer with a table of contents is another layer than the one without: only a manifest
 * vouches for a table, and another manifest may have a false one for the same layer. So images with it have other layers in caches.
 */
function nameOf({ diffId, table }: DeclaredLayer): string {
  return table === undefined ? diffId : JSON.stringify([diffId, table]);
}

/** Records the layers that the engine lacks, and returns the uppermost one. */
function addMissing(
  state: EngineState,
  groups: readonly LayerGroup[],
  layers: readonly DeclaredLayer[],
  now: number,
): number {
  const { database, layout, isServer } = state;
  let top: LayerRecord | undefined;
  let isOnNew = false;
  for (const { existing, content, from, to } of groups) {
    const own = layers.slice(from, to).map(({ createdAt: _, table: __, ...blob }) => blob);
    const table = own.length === 1 ? layers[from]?.table : undefined;
    const createdAt = layers[to - 1]?.createdAt ?? now;
    const isUsable = existing !== undefined && !isOnNew && (existing.isWhole || existing.isAbsent === true);
    if (isUsable) {
      top = { id: existing.id, parent: top?.id ?? null, depth: (top?.depth ?? 0) + 1 };
      if (isAbsent(database, existing.id) && own.length > 0) {
        // The latest source is known to work, and comes first. On a server it comes last, unless the others have failed: a client must not
        // be able to spoil the images of others.
        const isFirst = !isServer || unreachableReason(state, [existing.id]) !== undefined;
        addBlobSources(database, existing.id, own, { isFirst });
      }
      continue;
    }
    // The existing layer is damaged, or built on a damaged one.
    if (existing !== undefined) clearContent(database, existing.id);
    const layer = { parent: top, content, createdAt };
    // An image without layers has an empty one, for which nothing has to be fetched.
    top =
      own.length === 0
        ? addLayer(database, layout, { ...layer, directory: makeEmpty(layout), marks: noMarks })
        : addAbsentLayer(database, layer, own);
    recordTable(database, top.id, table);
    isOnNew = true;
  }
  if (top === undefined) throw new Error("an image has no layer");
  return top.id;
}

function makeEmpty({ scratch }: Layout): string {
  const directory = join(scratch, crypto.randomUUID());
  makeDirectory(directory);
  return directory;
}
