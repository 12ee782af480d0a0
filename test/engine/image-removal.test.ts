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
  expect(above(middle, base)).toBeWithin(3_000_000, 3_100_000);
  expect(above(top, middle)).toBeWithin(5_000_000, 5_100_000);
  expect(above(side, middle)).toBeWithin(0, 100_000);
  expect(new Map((await list("?sizes=1")).map(({ uuid, size }) => [uuid, size]))).toEqual(sizes);
});

test("removing an image removes its tags, and layers that no other image needs", async () => {
  await engine.json("PATCH", `/v1/images/${middle}/tag`, { tag: "middle:1" });
  expect(await engine.json("DELETE", `/v1/images/${middle}`)).toEqual({ freed_bytes: 0 });
  expect(await list("?tag=middle")).toEqual([]);
  expect((await engine.run(side, "cat /middle | wc -c", { disposable: true })).stdout).toBe("3000000\n");

  const { freed_bytes } = await engine.json<{ freed_bytes: number }>("DELETE", `/v1/images/${top}`);
  expect(freed_bytes).toBeWithin(5_000_000, 5_100_000);
  expect(layers()).toBe(3);
  const last = await engine.json<{ freed_bytes: number }>("DELETE", `/v1/images/${side}`);
  expect(last.freed_bytes).toBeWithin(3_000_000, 3_100_000);
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
