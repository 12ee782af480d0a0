/** Layers that wait to be sent to a registry. */
import { expect, test } from "bun:test";
import { openScratch } from "../../src/cli/process/scratch.ts";
import { digestOf } from "../../src/image/digest.ts";
import { createPackedLayers } from "../../src/image/layer-writer.ts";
import { temporaryDirectory } from "../support/bough.ts";

test.each([1000, 3_000_000])(
  "of two equal layers of %d bytes the second stays when the first is sent",
  async (size) => {
    const content = Buffer.alloc(size, "layer");
    const layer = {
      async open() {
        return new Blob([content]).stream();
      },
    };
    using packed = createPackedLayers({
      compression: "none",
      openScratch: () => openScratch("push", { TMPDIR: temporaryDirectory() }),
    });
    const [first, second] = [await packed.pack(layer), await packed.pack(layer)];
    expect(second.blob).toEqual(first.blob);
    first[Symbol.dispose]();
    const bytes = Buffer.concat(await Array.fromAsync(second.open()));
    expect(digestOf(bytes)).toBe(second.blob.digest);
  },
);
