import type { Service } from "../../../service/client.ts";
import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import { NotFoundError } from "../../../service/http/errors.ts";
import { isSha256 } from "../../../sha256.ts";
import { configurationTitle } from "../../cache/layer-cache.ts";
import type { Additions } from "../merge-additions.ts";
import { emptyIndex, type ScopeIndex } from "../scope-index.ts";
import { factKey } from "./bound-index.ts";
import { addPortableImage, chainOf, type PortableImage } from "./portable-image.ts";
import type { LayerSender } from "./send-layers.ts";
import { absentLayer, type SharedImages } from "./shared-images.ts";

interface TranslateOptions {
  service: Pick<Service, "findImage">;
  images: SharedImages;
  sender: LayerSender;
  /** The images whose layers are sent. */
  sends: readonly string[] | "all";
  now: number;
  signal: AbortSignal;
}

/** Images at once whose layers the service is asked for. */
const maxConcurrent = 8;

/**
 * Returns the index of a build with images identified by their contents instead of the service's UUIDs. Sends their layers. A layer that
 * is not sent is named all the same, so that steps above it are found.
 */
export async function toPortableIndex(used: ScopeIndex, options: TranslateOptions): Promise<Additions> {
  const { sender, sends, now, signal } = options;
  const index: ScopeIndex = { ...emptyIndex(), steps: used.steps };
  const sent = new Set<string>();
  const wanted = sends === "all" ? undefined : await layersIn(sends, sender);
  const names = new Map<
    string,
    Promise<{ name: string; chain: string | null; bytes?: number | undefined } | undefined>
  >();
  const nameOf = (uuid: string) => {
    return names.getOrInsertComputed(uuid, () => describe(uuid));
  };

  async function describe(uuid: string) {
    const layers = await layersOf(uuid).catch((error: unknown) => {
      // The service has lost it since.
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
    if (layers === undefined) return undefined;
    const found = options.images.contentsOf(uuid) ?? (await describedBy(uuid, options.service));
    if (found === undefined) return undefined;
    const { config, origin } = found;
    const chain = chainOf(layers.map(({ diffId }) => diffId));
    return {
      name: addPortableImage(index, { config, origin, layers }, now),
      chain,
      bytes: layers.at(-1)?.size,
    };
  }

  async function layersOf(uuid: string): Promise<PortableImage["layers"]> {
    const layers = wanted === undefined ? [] : await sender.describe(uuid);
    if (wanted === undefined || layers.every(({ id }) => wanted.has(id))) {
      const blobs = await sender.send(uuid);
      for (const { digest } of blobs) sent.add(digest);
      return blobs;
    }
    return layers.map(({ id, blob, createdAt }) => ({ ...(blob ?? absentLayer(id)), createdAt }));
  }

  // Another machine can't find a configuration, whose hash has this service's UUID. It would be a reason to write after each build.
  const steps = [...used.layers].filter(([, { title }]) => title !== configurationTitle);
  // Layers of steps first: they begin to be sent at once.
  const uuids = new Set(steps.map(([, { image }]) => image));
  await forEachConcurrently(uuids, maxConcurrent, signal, async (uuid) => void (await nameOf(uuid)));
  for (const [hash, layer] of steps) {
    const found = await nameOf(layer.image);
    if (found === undefined) continue;
    const bytes = layer.bytes ?? (found.bytes || null);
    index.layers.set(hash, { ...layer, image: found.name, operation: null, bytes });
  }
  for (const [hash, copy] of used.copies) {
    const source = await nameOf(copy.source);
    if (source !== undefined) index.copies.set(hash, { ...copy, source: source.name });
  }
  for (const [key, fact] of used.facts) {
    const end = key.indexOf("\n");
    const uuid = key.slice(0, end);
    // An image that the cache names: it has the answer.
    if (isSha256(uuid)) continue;
    const chain = options.images.chainOf(uuid) ?? (await nameOf(uuid))?.chain ?? undefined;
    if (chain !== undefined) index.facts.set(factKey(chain, key.slice(end + 1)), fact);
  }
  return { index, sent };
}

/** Returns the ids of the layers of images. */
async function layersIn(
  images: readonly string[],
  sender: Pick<LayerSender, "describe">,
): Promise<ReadonlySet<string>> {
  const layers = await Promise.all(images.map((image) => sender.describe(image)));
  return new Set(layers.flat().map(({ id }) => id));
}

async function describedBy(
  uuid: string,
  service: Pick<Service, "findImage">,
): Promise<Pick<PortableImage, "config" | "origin"> | undefined> {
  const found = await service.findImage(uuid);
  if (found === undefined || found === "unsupported") return undefined;
  return { config: found.config ?? {}, origin: found.origin ?? {} };
}
