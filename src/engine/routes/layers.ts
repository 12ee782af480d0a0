import { findOpenableLayer, listLayers } from "../export/image-layers.ts";
import { queryFlag, queryNumber } from "../http/fields.ts";
import { jsonResponse } from "../http/responses.ts";
import type { Route } from "../router.ts";

/** Routes of the extension `layers`: an image's layers as they are exported. */
export const layerRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/images/:uuid/layers",
    respond: ({ state, parameters, url }) =>
      jsonResponse({ layers: listLayers(state, parameters.uuid ?? "", queryFlag(url, "sizes")) }),
  },
  {
    method: "GET",
    path: "/v1/images/:uuid/layers/:layer",
    async respond({ state, parameters, url, request }) {
      const clampTo = queryNumber(url, "clamp", 0, 2 ** 53);
      const layer = findOpenableLayer(state, parameters.uuid ?? "", parameters.layer ?? "", clampTo);
      const headers = { "Content-Type": layer.mediaType };
      return new Response(request.method === "HEAD" ? null : await layer.open(), { headers });
    },
  },
];
