import { asRecord, asText } from "../../service/http/json.ts";

/** A shared cache that a layer, or a part of it, comes from. */
interface ForeignOrigin {
  /** The name that messages show. */
  cache: string;
  /** The fingerprint of the key whose signature of the cache's index was verified; null if none was. */
  key: string | null;
}

/**
 * The shared caches that a layer depends on. Empty: it was made on this machine, of images that the Dockerfile names and of such layers.
 * "unknown": an earlier version of bough did not record it.
 */
export type LayerOrigin = readonly ForeignOrigin[] | "unknown";

export const madeHere: LayerOrigin = [];

/** Returns the origin of what is made of parts with these origins. */
export function joinOrigins(parts: readonly LayerOrigin[]): LayerOrigin {
  const joined = new Map<string, ForeignOrigin>();
  for (const part of parts) {
    if (part === "unknown") return "unknown";
    for (const origin of part) joined.set(JSON.stringify([origin.cache, origin.key]), origin);
  }
  return [...joined.values()];
}

/**
 * Returns why a layer is not trusted: the caches that no trusted key has signed. `undefined`: it is trusted. `trusted`: the keys'
 * fingerprints; `undefined` if everything is trusted.
 */
export function distrustOf(
  origin: LayerOrigin,
  trusted: ReadonlySet<string> | undefined,
): readonly string[] | "unknown" | undefined {
  if (trusted === undefined) return undefined;
  if (origin === "unknown") return "unknown";
  const caches = origin.flatMap(({ cache, key }) => (key !== null && trusted.has(key) ? [] : [cache]));
  return caches.length === 0 ? undefined : [...new Set(caches)];
}

/** Returns the text that the store keeps. */
export function formatOrigin(origin: LayerOrigin): string | null {
  return origin === "unknown" ? null : JSON.stringify(origin.map(({ cache, key }) => ({ cache, key })));
}

export function parseOrigin(text: string | null): LayerOrigin {
  if (text === null) return "unknown";
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return "unknown";
  }
  if (!Array.isArray(list)) return "unknown";
  const origins = list.map((entry): ForeignOrigin | undefined => {
    const [cache, key] = [asText(asRecord(entry)?.cache), asText(asRecord(entry)?.key) ?? null];
    return cache === undefined ? undefined : { cache, key };
  });
  return origins.every((origin) => origin !== undefined) ? origins : "unknown";
}
