/** The caches of cache mounts: `GET /v1/caches/{key}`, the extension `cache-archives`. */
import { BoughError } from "../../errors.ts";
import type { Transport } from "../http/transport.ts";

export interface Caches {
  /**
   * Opens the archive of a cache by its key, see `cacheKeyOf`. No command can use the cache until it is read. Rejects with a
   * NotFoundError if there is none, and if a command is using it.
   */
  openCache(key: string): Promise<ReadableStream<Uint8Array>>;
}

export function createCaches(transport: Transport): Caches {
  return {
    async openCache(key) {
      const path = `/v1/caches/${encodeURIComponent(key)}`;
      const { body } = await transport.call({ method: "GET", path, repeatable: true, expects: "stream" });
      if (body instanceof ReadableStream) return body as ReadableStream<Uint8Array>;
      throw new BoughError(`the service sent no data for cache ${key}`);
    },
  };
}
