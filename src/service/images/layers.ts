/** An image's layers in OCI format: `GET /v1/images/{uuid}/layers`, the extension `layers`. */
import { BoughError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { asInteger, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, listIn } from "../http/response.ts";
import type { ServiceCall, Transport } from "../http/transport.ts";
import type { ChangedAmount, ImageLayer, ImageLayerChanges, LayerChange } from "../wire/image.ts";

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
      const layers = await getList(transport, "layers", { path: pathOf(image) });
      return layers.map((item) => {
        const { record, layer } = layerIn(item, image);
        const blob = readBlob(asRecord(record?.blob));
        const source = asText(record?.source);
        const stored = source === undefined ? {} : { source };
        const remote = record?.is_remote === true ? { is_remote: true } : {};
        return blob === undefined ? layer : { ...layer, blob, ...stored, ...remote };
      });
    },

    async layerSizes(image) {
      const parts = { path: pathOf(image), query: { sizes: "1" }, ...examining };
      const layers = await getList(transport, "layers", parts);
      return layers.flatMap((item) => {
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

/** No time limit: the service examines each file of the image. */
const examining = { timeoutMilliseconds: 0 };

async function getList(
  transport: Transport,
  name: string,
  parts: Pick<ServiceCall, "path" | "query" | "timeoutMilliseconds">,
): Promise<unknown[]> {
  const requires = aList(name);
  const { body } = await transport.call({ method: "GET", repeatable: true, requires, ...parts });
  return listIn(body, name);
}

function readBlob(record: JsonRecord | undefined): ImageLayer["blob"] {
  const [type, digest, diffId] = [record?.media_type, record?.digest, record?.diff_id].map(asText);
  const size = asInteger(record?.size);
  if (type === undefined || !isDigest(digest) || !isDigest(diffId) || size === undefined) return undefined;
  return { media_type: type, digest, size, diff_id: diffId };
}

/** Reads the fields that all lists of layers share. Throws if the id or time is missing. */
function layerIn(item: unknown, image: string) {
  const record = asRecord(item);
  const [id, created] = [asText(record?.id), asText(record?.created_at)];
  if (id === undefined || created === undefined || Number.isNaN(Date.parse(created)))
    throw new BoughError(`the service lists a layer of image ${image} without its id or time`);
  return { record, layer: { id, created_at: created, is_imported: record?.is_imported === true } };
}

export interface ImageChanges {
  /** Returns what each layer changes, the lowest first. Only with the extension `changes`. */
  summarizeChanges(image: string): Promise<ImageLayerChanges[]>;
  /** Returns one layer's changes, the largest first. `total` may be more than are listed. Only with the extension `changes`. */
  listChanges(
    image: string,
    layer: string,
    limit: number | undefined,
  ): Promise<{ changes: LayerChange[]; total: number }>;
}

export function createImageChanges(transport: Transport): ImageChanges {
  const pathOf = (image: string) => `/v1/images/${encodeURIComponent(image)}/changes`;
  return {
    async summarizeChanges(image) {
      const layers = await getList(transport, "layers", { path: pathOf(image), ...examining });
      return layers.map((item) => {
        const { record, layer } = layerIn(item, image);
        return {
          ...layer,
          added: amountIn(record?.added),
          changed: amountIn(record?.changed),
          deleted: amountIn(record?.deleted),
          hidden: amountIn(record?.hidden),
        };
      });
    },

    async listChanges(image, layer, limit) {
      const { body } = await transport.call({
        method: "GET",
        repeatable: true,
        ...examining,
        path: `${pathOf(image)}/${encodeURIComponent(layer)}`,
        query: { limit: limit?.toString() },
        requires: aList("changes"),
      });
      const changes = listIn(body, "changes").flatMap(readChange);
      return { changes, total: asInteger(asRecord(body)?.total) ?? changes.length };
    },
  };
}

function readChange(item: unknown): LayerChange[] {
  const record = asRecord(item);
  const [kind, path, type] = [record?.kind, asText(record?.path), record?.type];
  if (kind !== "added" && kind !== "changed" && kind !== "deleted") return [];
  if (path === undefined) return [];
  const known = type === "file" || type === "directory" || type === "symlink" ? type : "other";
  const [mode, size] = [asInteger(record?.mode) ?? 0, asInteger(record?.size) ?? 0];
  return [{ kind, path, type: known, mode, size, hidden: amountIn(record?.hidden) }];
}

function amountIn(value: unknown): ChangedAmount {
  const record = asRecord(value);
  return { files: asInteger(record?.files) ?? 0, bytes: asInteger(record?.bytes) ?? 0 };
}
