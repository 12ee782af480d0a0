/** Sending layers to a store that fails, or is asked for many at once. */
import { expect, test } from "bun:test";
import { createLayerSender } from "../../../src/builder/scopes/registry/send-layers.ts";
import { digestOf } from "../../../src/image/digest.ts";
import type { BlobStore } from "../../../src/registry/blob-store.ts";
import type { ImageLayer } from "../../../src/service/wire/image.ts";

const { signal } = new AbortController();

function senderTo(store: Partial<BlobStore>, count = 1) {
  const layers = Array.from({ length: count }, (_, at) => {
    const digest = digestOf(`${at}`);
    const blob = { media_type: "application/vnd.oci.image.layer.v1.tar", digest, size: 1, diff_id: digest };
    return { id: `${at}`, created_at: "0001-01-01T00:00:00Z", blob } as ImageLayer;
  });
  const service = {
    listLayers: async () => layers,
    openLayer: async () => new Response("x").body as ReadableStream<Uint8Array>,
  };
  return createLayerSender({
    service: service as unknown as Parameters<typeof createLayerSender>[0]["service"],
    store: { address: "dir:/x", hasBlob: async () => false, ...store } as BlobStore,
    imageMetadata: { get: () => undefined, set: () => undefined },
    compression: "gzip",
    openScratch: () => {
      throw new Error("nothing is packed");
    },
    kept: async () => new Set(),
    signal,
  });
}

test("a layer that could not be sent is sent again, and has a time that an index can hold", async () => {
  let attempts = 0;
  using sender = senderTo({
    async putBlob() {
      if (++attempts === 1) throw new Error("away");
    },
  });
  await expect(sender.send("image")).rejects.toThrow("away");
  expect(await sender.send("image")).toMatchObject([{ createdAt: 0 }]);
  await sender.send("image");
  expect(attempts).toBe(2);
});

test("a store is asked for a few layers at a time", async () => {
  let [running, most] = [0, 0];
  using sender = senderTo(
    {
      async hasBlob() {
        most = Math.max(most, ++running);
        await Promise.resolve();
        running--;
        return true;
      },
    },
    100,
  );
  expect(await sender.send("image")).toHaveLength(100);
  expect(most).toBeLessThanOrEqual(8);
});
