import { directoryMode } from "../../image/file-mode.ts";
import { cacheKeyOf } from "../../service/wire/mount.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import { formatOrigin, joinOrigins, type LayerOrigin, madeHere, parseOrigin } from "../state/layer-origin.ts";

/** The fields of a cache mount that decide which contents it has. */
export interface CacheIdentity {
  id: string;
  uid?: number | undefined;
  gid?: number | undefined;
  /** Octal; default: 0755. */
  mode?: string | undefined;
}

type Facts = Pick<ImageMetadataCache, "get" | "set">;

/** Returns the key of the cache of a cache mount; see `cacheKeyOf`. */
export function keyOfCache({ id, uid = 0, gid = 0, mode }: CacheIdentity, realm?: string): string {
  const bits = mode === undefined ? directoryMode : Number.parseInt(mode, 8);
  return cacheKeyOf({ id, uid, gid, mode: bits, realm });
}

/** Records that a cache mount of this machine may have begun with the contents of a shared cache. */
export function recordCacheOrigin(imageMetadata: Facts, key: string, origin: LayerOrigin): void {
  const text = formatOrigin(joinOrigins([originOfCache(imageMetadata, key), origin]));
  // An unknown origin has no text form.
  if (text !== null) imageMetadata.set(subjectOf(key), originKey, text);
}

/** Returns where the contents of a cache mount come from. */
export function originOfCache(imageMetadata: Facts, key: string): LayerOrigin {
  const text = imageMetadata.get(subjectOf(key), originKey);
  return text === undefined ? madeHere : parseOrigin(text);
}

const originKey = "origin";
const subjectOf = (key: string) => `cache mount ${key}`;
