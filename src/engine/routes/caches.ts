import { openCacheArchive } from "../export/cache-archive.ts";
import { RequestError } from "../http/responses.ts";
import type { Route } from "../router.ts";

/** The route of the extension `cache-archives`. */
export const cacheRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/caches/:key",
    async respond({ state, parameters }) {
      if (state.isServer) throw new RequestError(403, "caches are not readable on a server");
      const body = await openCacheArchive(state, parameters.key ?? "");
      return new Response(body, { headers: { "Content-Type": "application/x-tar" } });
    },
  },
];
