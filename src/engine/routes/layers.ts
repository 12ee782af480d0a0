import type { ImageLayer } from "../../service/types.ts";
import { streamLayer } from "../export/layer-archive.ts";
import { jsonResponse, RequestError } from "../http/answers.ts";
import { readNumber } from "../http/query.ts";
import type { Route } from "../http/router.ts";
import { requireImage } from "../records/images.ts";
import { layerChain, layerDirectory } from "../records/layers.ts";
import type { EngineState } from "../state.ts";

/** An image's layers, as they go into an image that leaves the engine: the extension `layers`. */
export const layerRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/images/:uuid/layers",
    answer: ({ state, parameters }) => jsonResponse({ layers: layersOf(state, parameters.uuid ?? "") }),
  },
  {
    method: "GET",
    path: "/v1/images/:uuid/layers/:layer",
    answer({ state, parameters, url, request }) {
      const { uuid = "", layer = "" } = parameters;
      const index = layersOf(state, uuid).findIndex(({ id }) => id === layer);
      const id = layerIds(state, uuid)[index];
      if (id === undefined) throw new RequestError(404, `image ${uuid} has no layer ${layer}`);
      const headers = { "Content-Type": "application/x-tar" };
      if (request.method === "HEAD") return new Response(null, { headers });
      const { layout, inUserNamespace } = state;
      const ended = new AbortController();
      const chunks = streamLayer(layerDirectory(layout, id), {
        inUserNamespace,
        clampTo: readNumber(url, "clamp", 0, 2 ** 53),
        signal: AbortSignal.any([ended.signal, state.closing]),
      });
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          ended.abort();
          await chunks.return(undefined);
        },
      });
      return new Response(body, { headers });
    },
  },
];

/** The lowest first. */
function layerIds(state: EngineState, reference: string): number[] {
  return layerChain(state.database, requireImage(state, reference).layer).reverse();
}

function layersOf(state: EngineState, reference: string): ImageLayer[] {
  const query = state.database.query<{ created_at: number; content: string | null }, [number]>(
    "SELECT created_at, content FROM layers WHERE id = ?",
  );
  return layerIds(state, reference).map((id) => {
    const row = query.get(id);
    if (row === null) throw new RequestError(404, `image ${reference} has lost a layer`);
    return {
      // The time makes it another one than that of a directory that was here before.
      id: `${id}-${row.created_at}`,
      created_at: new Date(row.created_at).toISOString(),
      is_imported: row.content !== null,
    };
  });
}
