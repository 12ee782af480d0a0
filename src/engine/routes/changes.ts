import { jsonResponse, RequestError } from "../http/answers.ts";
import { readNumber } from "../http/query.ts";
import { requireImage } from "../records/images.ts";
import type { Route } from "../router.ts";
import { bringForRequest } from "../unpack/bring-layers.ts";
import { unpackedLayers } from "./layers.ts";

/** The response is held in memory as a whole. */
const maxListed = 100_000;

/** Routes of the extension `changes`: what an image's layers add, change and delete. */
export const changeRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/images/:uuid/changes",
    async answer({ state, parameters }) {
      const { summarizeChanges } = await import("../inspect/image-changes.ts");
      await bringForRequest(state, requireImage(state, parameters.uuid ?? ""));
      const layers = await summarizeChanges(unpackedLayers(state, parameters.uuid ?? ""), state);
      return jsonResponse({ layers: layers.map(({ number: _, ...layer }) => layer) });
    },
  },
  {
    method: "GET",
    path: "/v1/images/:uuid/changes/:layer",
    async answer({ state, parameters, url }) {
      const { uuid = "", layer = "" } = parameters;
      const layers = unpackedLayers(state, uuid);
      const index = layers.findIndex(({ id }) => id === layer);
      if (index < 0) throw new RequestError(404, `image ${uuid} has no layer ${layer}`);
      await bringForRequest(state, requireImage(state, uuid));
      const limit = readNumber(url, "limit", 1, maxListed) ?? maxListed;
      const { listChanges } = await import("../inspect/image-changes.ts");
      return jsonResponse(await listChanges(layers, index, limit, state));
    },
  },
];
