/** An image's layers in OCI format: `GET /v1/images/{uuid}/layers`, the extension `layers`. */

import { BoughError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { asInteger, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, listIn } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageLayer } from "../wire/image.ts";

export interface ImageLayers {
  /** Returns the layers, the lowest first. Only with the extension `layers`. */
  listLayers(image: string): Promise<ImageLayer[]>;
  /**
   * Returns the layers that bough has made, the lowest first, each with its bytes on disk. Only with the extension `layer-sizes`.
   */
  layerSizes(image: string): Promise<{ id: string; size: number }[]>;
  /**
   * Opens a layer's archive: the layer's `blob`, unchanged, if it has one; else uncompressed, with no time after `clampTo`
   * (seconds since the epoch).
   */
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
        const { record, layer } = layerIn(item, image);
        const blob = readBlob(asRecord(record?.blob));
        return blob === undefined ? layer : { ...layer, blob };
      });
    },

    async layerSizes(image) {
      const { body } = await transport.call({
        method: "GET",
        path: pathOf(image),
        query: { sizes: "1" },
        repeatable: true,
        // No time limit: the service examines each file.
        timeoutMilliseconds: 0,
        requires: aList("layers"),
      });
      return listIn(body, "layers").flatMap((item) => {
        const record = asRecord(item);
        const [id, size] = [asText(record?.id), asInteger(record?.size)];
        return id === undefined || size === undefined ? [] : [{ id, size }];
      });
    },

    async openLayer(image, layer, clampTo) {
      const { body } = await transport.call({
        method: "GET",
        path: `${pathOf(image)}/${encodeURIComponent(layer)}`,
        query: { clamp: clampTo?.toString() },
        repeatable: true,
        expects: "stream",
      });
      if (body instanceof ReadableStream) return body as ReadableStream<Uint8Array>;
      throw new BoughError(`the service sent no data for layer ${layer} of image ${image}`);
    },
  };
}

function readBlob(record: JsonRecord | undefined): ImageLayer["blob"] {
  const [type, digest, diffId] = [record?.media_type, record?.digest, record?.diff_id].map(asText);
  const size = asInteger(record?.size);
  if (type === undefined || !isDigest(digest) || !isDigest(diffId) || size === undefined) return undefined;
  return { media_type: type, digest, size, diff_id: diffId };
}

/** Reads the fields that all lists of layers share. Throws if the id or time is missing. */
export function layerIn(item: unknown, image: string) {
  const record = asRecord(item);
  const [id, created] = [asText(record?.id), asText(record?.created_at)];
  if (id === undefined || created === undefined || Number.isNaN(Date.parse(created)))
    throw new BoughError(`the service lists a layer of image ${image} without its id or time`);
  return { record, layer: { id, created_at: created, is_imported: record?.is_imported === true } };
}
