/** Blobs of layers that pass on to somebody else before anybody has seen their contents. */
import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { checkContent } from "../../src/engine/unpack/checked-blob.ts";
import { sha256Of } from "../../src/sha256.ts";

const content = "content ".repeat(100_000);
const diffId = `sha256:${sha256Of(content)}`;
const xz = Buffer.concat([Uint8Array.of(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0), Buffer.from(content)]);

test.each<
  [what: string, blob: Uint8Array, layer: { diffId: string; maxBytes: number }, error: string | undefined]
>([
  ["the layer's content", gzipSync(content), { diffId, maxBytes: 1_000_000 }, undefined],
  ["other content", gzipSync("forged"), { diffId, maxBytes: 1_000_000 }, `not ${diffId}`],
  ["more than a layer may have", gzipSync(content), { diffId, maxBytes: 1000 }, "more than 1000 bytes"],
  ["a compression that no layer has", xz, { diffId, maxBytes: 1_000_000 }, "xz"],
  ["a damaged compression", gzipSync(content).fill(0, 100), { diffId, maxBytes: 1_000_000 }, ""],
])(
  "%s",
  async (_, blob, layer, error) => {
    async function* chunks() {
      for (let at = 0; at < blob.byteLength; at += 1000) yield blob.subarray(at, at + 1000);
    }
    const passed: Uint8Array[] = [];
    const passing = (async () => {
      for await (const chunk of checkContent(chunks(), { ...layer, name: "layer 1" })) passed.push(chunk);
    })();
    if (error === undefined) {
      await passing;
      expect(Buffer.concat(passed).equals(blob)).toBe(true);
    } else expect(passing).rejects.toThrow(error);
    await passing.catch(() => undefined);
  },
  10_000,
);
