import { asInteger, asRecord, asText } from "../http/json.ts";
import { aList, listIn } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
import type { ChangedAmount, ImageLayerChanges, LayerChange } from "../wire/layer-changes.ts";
import { layerIn } from "./layers.ts";

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
  // No time limit: the service examines each file of the image.
  const withoutTimeout = { method: "GET", repeatable: true, timeoutMilliseconds: 0 } as const;
  return {
    async summarizeChanges(image) {
      const { body } = await transport.call({
        ...withoutTimeout,
        path: pathOf(image),
        requires: aList("layers"),
      });
      return listIn(body, "layers").map((item) => {
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
        ...withoutTimeout,
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
