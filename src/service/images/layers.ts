/** An image's layers as OCI has them: `GET /v1/images/{uuid}/layers`, the extension `layers`. */
import { BoughError } from "../../errors.ts";
import { asRecord, asText } from "../http/json.ts";
import { aList, listIn } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageLayer } from "../types.ts";

export interface ImageLayers {
  /** The lowest first. Only with the extension `layers`. */
  listLayers(image: string): Promise<ImageLayer[]>;
  /** A layer's uncompressed archive as it comes; no time in it is after `clampTo`, in seconds since the epoch. */
  openLayer(image: string, layer: string, clampTo: number | undefined): Promise<ReadableStream<Uint8Array>>;
}

export function createImageLayers(transport: Transport): ImageLayers {
  const pathOf = (image: string) => `/v1/images/${encodeURIComponent(image)}/layers`;
  return {
    async listLayers(image) {
      const { body } = await transport.call({
        method: "GET",
        path: pathOf(image),
        repeatable: true,
        requires: aList("layers"),
      });
      return listIn(body, "layers").map((item) => {
        const record = asRecord(item);
        const [id, created] = [asText(record?.id), asText(record?.created_at)];
        if (id === undefined || created === undefined || Number.isNaN(Date.parse(created)))
          throw new BoughError(`the service lists a layer of image ${image} without its id or time`);
        return { id, created_at: created, is_imported: record?.is_imported === true };
      });
    },

    async openLayer(image, layer, clampTo) {
      const { body } = await transport.call({
        method: "GET",
        path: `${pathOf(image)}/${encodeURIComponent(layer)}`,
        ...(clampTo === undefined ? {} : { query: { clamp: String(clampTo) } }),
        repeatable: true,
        expects: "stream",
      });
      if (body instanceof ReadableStream) return body as ReadableStream<Uint8Array>;
      throw new BoughError(`the service sent nothing for layer ${layer} of image ${image}`);
    },
  };
}
