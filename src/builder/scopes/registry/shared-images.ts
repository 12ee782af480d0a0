import { BoughError } from "../../../errors.ts";
import type { LayerBlob } from "../../../image/layer-header.ts";
import type { Service } from "../../../service/client.ts";
import { isForbidden } from "../../../service/http/errors.ts";
import { sha256Of } from "../../../sha256.ts";
import type { LayerOrigin } from "../../state/layer-origin.ts";
import type { ScopeIndex } from "../scope-index.ts";
import { chainOf, findPortableImage, type PortableImage } from "./portable-image.ts";

export type SharingService = Pick<
  Service,
  | "address"
  | "capabilities"
  | "declareImage"
  | "findImage"
  | "listLayers"
  | "openCache"
  | "openLayer"
  | "packLayer"
>;

/** The images of caches that name them by their contents, as images of the service. */
export interface SharedImages {
  /** Tells the service what an image is made of, which fetches nothing. Returns its UUID; `undefined` if it can't be had. */
  declare(name: string, source: ImageSource): Promise<string | undefined>;
  /** Notes the layers of an image that a build starts from, by their DiffIDs. */
  noteBase(image: string, diffIds: readonly string[]): void;
  /** Returns what was noted of an image. */
  contentsOf(image: string): PortableImage | undefined;
  /** Returns the ChainID of an image whose contents were noted; null for one without layers. */
  chainOf(image: string): string | null | undefined;
}

/** An image's parts, as the index lists them, and the address of the store with its layers. `label`: as messages show it. */
export interface ImageSource {
  index: ScopeIndex;
  address: string;
  label: string;
  /** What all that the index says depends on. */
  origin: LayerOrigin;
}

export function createSharedImages(
  service: Pick<SharingService, "declareImage">,
  warn: (text: string) => void,
): SharedImages {
  const refused = new Set<string>();
  const declared = new Map<string, Promise<string | undefined>>();
  const contents = new Map<string, PortableImage>();
  const chains = new Map<string, string | null>();

  function noteBase(uuid: string, diffIds: readonly string[]): void {
    chains.set(uuid, chainOf(diffIds));
  }

  function note(uuid: string, image: PortableImage): void {
    contents.set(uuid, image);
    noteBase(
      uuid,
      image.layers.map(({ diffId }) => diffId),
    );
  }

  /** One image that is refused for its source, such as by a signature policy, stands for all of it. */
  function warnOnce({ address, label }: ImageSource, reason: string): void {
    if (refused.has(address)) return;
    refused.add(address);
    warn(`cache: layers of ${label} are not used: ${reason}`);
  }

  async function declare(name: string, source: ImageSource): Promise<string | undefined> {
    const image = findPortableImage(source.index, name);
    if (image === undefined) return undefined;
    try {
      const { image: uuid } = await service.declareImage(declarationOf(image, source.address));
      note(uuid, image);
      return uuid;
    } catch (error) {
      // An image that the service refuses is a miss.
      if (!(error instanceof BoughError)) throw error;
      if (isForbidden(error)) warnOnce(source, error.message);
      return undefined;
    }
  }

  return {
    declare(name, source) {
      const key = `${source.address} ${name}`;
      return declared.getOrInsertComputed(key, () => declare(name, source));
    },
    noteBase,
    contentsOf: (image) => contents.get(image),
    chainOf: (image) => chains.get(image),
  };
}

/** The service's request for an image whose layers are elsewhere. */
function declarationOf({ config, origin, layers }: PortableImage, source: string) {
  return {
    source,
    config,
    origin,
    layers: layers.map(({ mediaType, digest, size, diffId, createdAt }) => ({
      ...{ media_type: mediaType, digest, size, diff_id: diffId },
      created_at: new Date(createdAt).toISOString(),
    })),
  };
}

/** A layer whose blob nobody has: it stands for one that was not sent. If a step needs its files, they are made again. */
export function absentLayer(id: string): LayerBlob {
  const digest = `sha256:${sha256Of(`absent ${id}`)}`;
  return { mediaType: "application/vnd.oci.image.layer.v1.tar", digest, size: 0, diffId: digest };
}
