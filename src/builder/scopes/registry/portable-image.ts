import { type ImageConfig, parseImageConfig } from "../../../image/config.ts";
import { type ImageOrigin, parseImageOrigin } from "../../../image/history.ts";
import type { LayerBlob } from "../../../image/layer-header.ts";
import { parseRecord } from "../../../service/http/json.ts";
import { sha256Of } from "../../../sha256.ts";
import type { ScopeIndex } from "../scope-index.ts";

/** An image by what it is made of, the same on every machine. */
export interface PortableImage {
  config: ImageConfig;
  origin: ImageOrigin;
  /** The lowest first. */
  layers: readonly PortableLayer[];
}

/** A layer's blob. `createdAt`: when it was made, in milliseconds since the epoch. */
export interface PortableLayer extends LayerBlob {
  createdAt: number;
}

/** More than an image can have. */
const maxLayers = 1000;

/** Returns OCI's ChainID of the uppermost layer, in hex; null for an image without layers. */
export function chainOf(diffIds: readonly string[]): string | null {
  let chain: string | null = null;
  for (const diffId of diffIds) chain = chainAbove(chain, diffId);
  return chain;
}

/** https://github.com/opencontainers/image-spec/blob/main/config.md#layer-chainid */
function chainAbove(below: string | null, diffId: string): string {
  return below === null ? diffId.slice("sha256:".length) : sha256Of(`sha256:${below} ${diffId}`);
}

/** Adds an image to an index, and returns its name there. */
export function addPortableImage(
  index: ScopeIndex,
  { config, origin, layers }: PortableImage,
  usedAt: number,
): string {
  let chain: string | null = null;
  for (const { mediaType, digest, size, diffId, createdAt } of layers) {
    const below = chain;
    chain = chainAbove(below, diffId);
    index.chains.set(chain, { below, mediaType, digest, size, diffId, createdAt, usedAt });
  }
  const addText = (value: object) => {
    const text = JSON.stringify(value);
    const key = sha256Of(text);
    index.texts.set(key, { text, usedAt });
    return key;
  };
  const entry = { chain, config: addText(config), origin: addText(origin) };
  const name = nameOf(entry);
  index.images.set(name, { ...entry, usedAt });
  return name;
}

/** Finds an image by its name. Returns `undefined` if the index lacks a part of it, or has a forged one. */
export function findPortableImage(index: ScopeIndex, name: string): PortableImage | undefined {
  const entry = index.images.get(name);
  if (entry === undefined || nameOf(entry) !== name) return undefined;
  const layers = layersOfChain(index, entry.chain);
  const [config, origin] = [readText(index, entry.config), readText(index, entry.origin)];
  if (layers === undefined || config === undefined || origin === undefined) return undefined;
  return { config: parseImageConfig(config), origin: parseImageOrigin(origin), layers };
}

/** Returns the layers up to `chain`, the lowest first. */
export function layersOfChain(index: ScopeIndex, top: string | null): PortableLayer[] | undefined {
  const layers: PortableLayer[] = [];
  for (let chain = top; chain !== null; ) {
    const layer = index.chains.get(chain);
    if (layer === undefined || layers.length === maxLayers) return undefined;
    const { below, mediaType, digest, size, diffId, createdAt } = layer;
    // A digest of all layers below, so no chain leads back to itself.
    if (chainAbove(below, diffId) !== chain) return undefined;
    layers.push({ mediaType, digest, size, diffId, createdAt });
    chain = below;
  }
  return layers.reverse();
}

function nameOf(entry: { chain: string | null; config: string; origin: string }): string {
  return sha256Of(JSON.stringify([entry.chain, entry.config, entry.origin]));
}

function readText(index: ScopeIndex, key: string) {
  const text = index.texts.get(key)?.text;
  return text === undefined || sha256Of(text) !== key ? undefined : parseRecord(text);
}
