import type { Service } from "../../service/client.ts";
import { chooseTagged, foundImage, platformsAmong } from "../../service/images/found-image.ts";
import { isUuid } from "../../service/images/reference.ts";
import { type ImageRecord, isTag } from "../../service/wire/image.ts";
import { configureImage, tagImage } from "../records/image-changes.ts";
import { listImages } from "../records/image-list.ts";
import { removeImage } from "../records/image-removal.ts";
import { findImage, removeTags, requireImage } from "../records/images.ts";
import { createLayerCheck } from "../records/whole-layers.ts";
import type { EngineState } from "../state.ts";
import { ensureImages } from "../unpack/ensure-layers.ts";
import { ensureListed } from "../unpack/ensure-listed.ts";
import { type Calls, parseTimeFilter } from "./calls.ts";

type Images = Pick<
  Service,
  | "findImage"
  | "platformsOf"
  | "hasImage"
  | "listImages"
  | "declareImage"
  | "probeImage"
  | "tagImage"
  | "configureImage"
  | "untagImage"
  | "removeTag"
  | "removeImage"
>;

export function createImages(state: EngineState, { read, change }: Calls): Images {
  const list = (filter: Partial<Parameters<typeof listImages>[1]>): ImageRecord[] =>
    listImages(state, { ...everything, ...filter }).map(withoutNulls);
  return {
    findImage: (reference, platform) =>
      read(() => {
        if (isUuid(reference)) {
          const [found] = list({ uuids: [reference.toLowerCase()] });
          return found && foundImage(found);
        }
        const name = reference.replace(/^tag:/, "");
        // The filter is a prefix, so one list has both the name as written and the one with `:latest`.
        const found = isTag(name) ? chooseTagged(list({ tagPrefix: name }), name, platform) : undefined;
        return found && foundImage(found);
      }),

    platformsOf: (tag) => read(() => platformsAmong(list({ taggedOnly: true }), tag)),

    hasImage: (uuid) => read(() => findImage(state, uuid) !== undefined),

    listImages: ({ tag, tagged = false, uuid, uuids, since, until, sizes = false } = {}) =>
      read(() =>
        list({
          tagPrefix: tag,
          taggedOnly: tagged,
          uuids: uuid === undefined ? uuids : [uuid.toLowerCase()],
          since: parseTimeFilter(since),
          until: parseTimeFilter(until),
          sizes,
        }),
      ),

    declareImage: (request) =>
      change(async () => (await import("../unpack/remote-image.ts")).declareRemoteImage(state, request)),

    probeImage: (uuid) =>
      change(async () => {
        const image = requireImage(state, uuid);
        return (await import("../unpack/probe-image.ts")).isUsable(state, image);
      }),

    tagImage: (uuid, tag) => change(() => void tagImage(state, uuid, tag)),

    configureImage: (uuid, config, origin) =>
      change(() => configureImage(state, uuid, { config, origin }).uuid),

    untagImage: (uuid) =>
      change(() => void removeTags(state.database, requireImage(state, uuid).uuid, undefined)),

    removeTag: (uuid, tag) =>
      change(() => void removeTags(state.database, requireImage(state, uuid).uuid, tag)),

    removeImage: (uuid) => change(() => removeImage(state, uuid)),
  };
}

const everything = {
  tagPrefix: undefined,
  taggedOnly: false,
  uuids: undefined,
  since: undefined,
  until: undefined,
  sizes: false,
  limit: Number.POSITIVE_INFINITY,
  offset: 0,
};

function withoutNulls({ operation_uuid: operation, ...record }: ImageRecord): ImageRecord {
  return operation == null ? record : { ...record, operation_uuid: operation };
}

/**
 * Returns an image, once all of its layers are here.
 *
 * @param options.forLookup true if listings of its layers are enough, which have the paths and types of entries
 */
export async function ensureImage(
  state: EngineState,
  uuid: string,
  signal: AbortSignal,
  { forLookup = false } = {},
) {
  // The layers of an image in `state.trees` were checked before: a build asks for many files of its newest image, which has one more.
  const isChecked = (layer: number) => state.trees.has(layer);
  const image = requireImage(
    state,
    uuid,
    (layer) => isChecked(layer) || createLayerCheck(state, isChecked)(layer),
  );
  if (forLookup && (await ensureListed(state, image))) return image;
  await ensureImages(state, [image], { signal, report: () => undefined });
  return image;
}
