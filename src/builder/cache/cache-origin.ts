import { directoryMode } from "../../image/file-mode.ts";
import { cacheKeyOf } from "../../service/wire/mount.ts";
import type { FactStore } from "../../store/facts.ts";
import { formatOrigin, joinOrigins, type LayerOrigin, madeHere, parseOrigin } from "../state/layer-origin.ts";

/** A cache mount as far as its contents depend on it. `mode`: octal; default: 0755. */
export interface CacheIdentity {
  id: string;
  uid?: number | undefined;
  gid?: number | undefined;
  mode?: string | undefined;
}

type Facts = Pick<FactStore, "get" | "set">;

/** Returns the key of the cache of a cache mount; see `cacheKeyOf`. */
export function keyOfCache({ id, uid = 0, gid = 0, mode }: CacheIdentity, realm?: string): string {
  const bits = mode === undefined ? directoryMode : Number.parseInt(mode, 8);
  return cacheKeyOf({ id, uid, gid, mode: bits, realm });
}

/** Notes that a cache of this machine may have begun with what a shared cache had. */
export function noteCacheOrigin(facts: Facts, key: string, origin: LayerOrigin): void {
  const text = formatOrigin(joinOrigins([originOfCache(facts, key), origin]));
  // A cache of unknown origin is noted nowhere.
  if (text !== null) facts.set(subjectOf(key), question, text);
}

/** Returns what the contents of a cache depend on. */
export function originOfCache(facts: Facts, key: string): LayerOrigin {
  const text = facts.get(subjectOf(key), question);
  return text === undefined ? madeHere : parseOrigin(text);
}

const question = "origin";
const subjectOf = (key: string) => `cache mount ${key}`;
