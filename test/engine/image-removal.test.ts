/** Sizes of images, and removing images. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { openInput } from "../support/engine.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();
/** The images are base <- middle <- top and middle <- side. */
const middle = (await engine.run(base, "head -c 3000000 /dev/zero > /middle")).image ?? "";
const top = (await engine.run(middle, "head -c 5000000 /dev/zero > /top")).image ?? "";
const side = (await engine.run(middle, "touch /side")).image ?? "";

const list = async (query: string) =>
  (await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images${query}`)).images;
const layers = () => readdirSync(join(engine.directory, "layers")).length;

test("a list has sizes of all layers if the query asks for them", async () => {
  expect((await list(""))[0]).not.toHaveProperty("size");
  const sizes = new Map((await list("?sizes=1")).map(({ uuid, size = 0 }) => [uuid, size]));
  const above = (one: string, other: string) => (sizes.get(one) ?? 0) - (sizes.get(other) ?? 0);
  expect([above(middle, base), above(top, middle), above(side, middle)]).toEqual([3_000_000, 5_000_000, 0]);
  expect(new Map((await list("?sizes=1")).map(({ uuid, size }) => [uuid, size]))).toEqual(sizes);
});

test("an image's own size is that of layers which no other image with a tag has", async () => {
  const ownSize = async (image: string) =>
    (await list("?sizes=1")).find(({ uuid }) => uuid === image)?.own_size;
  // The base has a tag.
  expect(await ownSize(top)).toBe(8_000_000);
  await engine.json("PATCH", `/v1/images/${middle}/tag`, { tag: "middle:1" });
  expect([await ownSize(top), await ownSize(middle)]).toEqual([5_000_000, 3_000_000]);
});

test("removing an image removes its tags, and layers that no other image needs", async () => {
  await engine.json("PATCH", `/v1/images/${middle}/tag`, { tag: "middle:1" });
  expect(await engine.json("DELETE", `/v1/images/${middle}`)).toEqual({
    ...{ freed_bytes: 0, cached_bytes: 3_000_000 },
  });
  expect(await list("?tag=middle")).toEqual([]);
  expect((await engine.run(side, "cat /middle | wc -c", { disposable: true })).stdout).toBe("3000000\n");

  const { freed_bytes } = await engine.json<{ freed_bytes: number }>("DELETE", `/v1/images/${top}`);
  expect(freed_bytes).toBe(5_000_000);
  expect(layers()).toBe(3);
  const last = await engine.json<{ freed_bytes: number }>("DELETE", `/v1/images/${side}`);
  expect(last.freed_bytes).toBe(3_000_000);
  expect(layers()).toBe(1);
  expect((await list("")).map(({ uuid }) => uuid)).toEqual([base]);
  expect((await engine.fetch("DELETE", `/v1/images/${side}`)).status).toBe(404);
});

test("an image with a running operation is not removed", async () => {
  const { uuid } = await engine.start({ image: base, command: "cat", stdin: openInput });
  const refused = await engine.fetch("DELETE", `/v1/images/${base}`);
  expect([refused.status, await refused.text()]).toEqual([
    409,
    expect.stringContaining("an operation runs on it"),
  ]);
  await engine.closeInput({ uuid });
  await engine.finish({ uuid });
});
