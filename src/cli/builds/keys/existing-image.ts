import { isDigest } from "../../../image/digest.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import { openBlobStore } from "../../../registry/open-blob-store.ts";
import { asRecord, parseRecord } from "../../../service/http/json.ts";
import type { BuildOutput } from "../../export/build-outputs.ts";
import type { Runtime } from "../../process/runtime.ts";

/** The annotation of a manifest or index that has the content key of its image, where its tag does not. */
export const keyAnnotation = "vnd.bough.content-key";

/** Returns the places in registries that outputs go to; `undefined` if one goes elsewhere, or to a place without a tag. */
export function registryPlaces(outputs: readonly BuildOutput[]): Place[] | undefined {
  const places = outputs.flatMap(({ destinations, isInsecure }) =>
    destinations.map((destination): Place | undefined => {
      if (destination.kind !== "registry" || destination.byDigest === true) return undefined;
      const [, repository, tag] = /^(.+):([^:/]+)$/.exec(destination.reference) ?? [];
      return repository === undefined || tag === undefined ? undefined : { repository, tag, isInsecure };
    }),
  );
  const known = places.filter((place) => place !== undefined);
  return known.length === 0 || known.length < places.length ? undefined : known;
}

export interface Place {
  /** `HOST/NAME` */
  repository: string;
  tag: string;
  isInsecure: boolean;
}

/** Looks for images in the registries that they would be pushed to. */
interface ExistingImages {
  /** Returns the digest of the image with this key that all places have; `undefined` if one has none, or another. */
  find(places: readonly Place[], key: string): Promise<string | undefined>;
}

/** One request finds an image. Mirrors are not asked: they may have what the registry has no more. */
export function createExistingImages(
  { fetch, clock, environment }: Pick<Runtime, "fetch" | "clock" | "environment">,
  signal: AbortSignal,
): ExistingImages {
  const stores = new Map<string, BlobStore>();
  const storeOf = ({ repository, isInsecure }: Place) =>
    stores.getOrInsertComputed(`${repository} ${isInsecure}`, () =>
      openBlobStore(`docker://${repository}`, {
        ...{ fetch, clock, environment },
        ...(isInsecure && { isInsecure }),
      }),
    );

  async function findAt(place: Place, key: string): Promise<string | undefined> {
    const store = storeOf(place);
    // Only an image with this key gets such a tag.
    if (place.tag.includes(key)) return store.findDigest(place.tag, signal);
    const found = await store.getManifest(place.tag, signal);
    const annotations = found && asRecord(parseRecord(found.bytes)?.annotations);
    return annotations?.[keyAnnotation] === key ? found?.digest : undefined;
  }

  return {
    async find(places, key) {
      let digest: string | undefined;
      for (const place of places) {
        const found = await findAt(place, key);
        if (!isDigest(found)) return undefined;
        digest ??= found;
      }
      return digest;
    },
  };
}
