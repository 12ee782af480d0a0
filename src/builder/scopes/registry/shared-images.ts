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

/** The images of caches that identify them by their contents, as images of the service. */
export interface SharedImages {
  /** Declares an image's layers to the service, which fetches none. Returns its UUID; `undefined` if the service can't have it. */
  declare(name: string, source: SharedImageSource): Promise<string | undefined>;
  /** Records the layers of an image that a build starts from, by their DiffIDs. */
  recordBase(image: string, diffIds: readonly string[]): void;
  /** Returns a declared image. */
  contentsOf(image: string): PortableImage | undefined;
  /** Returns the ChainID of a declared or recorded image; null for one without layers. */
  chainOf(image: string): string | null | undefined;
}

/** The index that lists an image's parts, and the address of the store with its layers. `label`: the name that messages show. */
export interface SharedImageSource {
  index: ScopeIndex;
  address: string;
  label: string;
  /** The origin of all entries of the index. */
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

  function recordBase(uuid: string, diffIds: readonly string[]): void {
    chains.set(uuid, chainOf(diffIds));
  }

  function record(uuid: string, image: PortableImage): void {
    contents.set(uuid, image);
    recordBase(
      uuid,
      image.layers.map(({ diffId }) => diffId),
    );
  }

  /** Warns once for each source: if one image is refused, for example by a signature policy, others are, too. */
  function warnOnce({ address, label }: SharedImageSource, reason: string): void {
    if (refused.has(address)) return;
    refused.add(address);
    warn(`cache: layers of ${label} are not used: ${reason}`);
  }

  async function declare(name: string, source: SharedImageSource): Promise<string | undefined> {
    const image = findPortableImage(source.index, name);
    if (image === undefined) return undefined;
    try {
      const { image: uuid } = await service.declareImage(declarationOf(image, source.address));
      record(uuid, image);
      return uuid;
    } catch (error) {
      // An image that the service refuses is a cache miss.
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
    recordBase,
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

/** Returns a blob that no store has, in place of a layer that was not sent. If a step needs its files, the layer is made again. */
export function absentLayer(id: string): LayerBlob {
  const digest = `sha256:${sha256Of(`absent ${id}`)}`;
  return { mediaType: "application/vnd.oci.image.layer.v1.tar", digest, size: 0, diffId: digest };
}
