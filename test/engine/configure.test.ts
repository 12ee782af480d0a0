/** `POST /v1/images/{uuid}/config`: the same files with another configuration. */
import { expect, test } from "bun:test";
import type { ImageConfig } from "../../src/image/config.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

const configure = (image: string, config: unknown) =>
  engine.fetch("POST", `/v1/images/${image}/config`, { config });
const configured = async (image: string, config: ImageConfig) =>
  ((await (await configure(image, config)).json()) as ImageRecord).uuid;
const configOf = async (uuid: string) =>
  (await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images?uuid=${uuid}`)).images[0]?.oci_config;

test("makes another image, the same one for the same configuration, and keeps the first unchanged", async () => {
  const before = await configOf(base);
  const config = { Env: ["A=1"], WorkingDir: "/srv", Labels: { a: "b" } };
  const image = await configured(base, config);
  expect(image).not.toBe(base);
  expect(await configOf(image)).toEqual(config);
  expect(await configOf(base)).toEqual(before);
  expect(await configured(base, config)).toBe(image);
  expect(await configured(image, config)).toBe(image);
  expect(await configured(image, { Env: ["A=2"] })).not.toBe(image);
});

test("applies to commands in the image, and to their results", async () => {
  const config = { Env: ["A=1"], WorkingDir: "/srv" };
  const image = await configured(base, config);
  const { stdout, image: result } = await engine.run(image, "echo $A > /made; echo $A");
  expect(stdout.trim()).toBe("1");
  expect(await configOf(result ?? "")).toEqual(config);
});

test("is ignored if the request has ignore_config", async () => {
  const image = await configured(base, { Env: ["A=1"] });
  const { stdout } = await engine.run(image, 'echo "[$A]"', { ignore_config: true });
  expect(stdout.trim()).toBe("[]");
});

const recordOf = async (uuid: string) =>
  (await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images?uuid=${uuid}`)).images[0];

test("an author and a history make another image, and are inherited by results", async () => {
  const history = [{ created_by: "FROM somewhere" }, { created_by: "ENV A=1", empty_layer: true }];
  const described = { config: (await configOf(base)) ?? {}, author: "me", history };
  const image = (await engine.json<ImageRecord>("POST", `/v1/images/${base}/config`, described)).uuid;
  expect(image).not.toBe(base);
  expect(await recordOf(image)).toMatchObject({ oci_author: "me", oci_history: history });
  // Fields that the request leaves out stay the same.
  expect(await configured(image, described.config)).toBe(image);

  const steps = [{ created_by: "ARG x", empty_layer: true }, { created_by: "RUN touch /made" }];
  const { image: result = "" } = await engine.run(image, "touch /made", { history: steps });
  expect(await recordOf(result)).toMatchObject({ oci_author: "me", oci_history: [...history, ...steps] });
  const { image: same = "" } = await engine.run(result, "true", { history: steps });
  expect(same).toBe(result);
  const { image: untold = "" } = await engine.run(result, "rm /made");
  expect((await recordOf(untold))?.oci_history?.slice(4)).toEqual([{ comment: "bough run" }]);
});

test.each<[string, unknown]>([
  ["an object in place of a list", {}],
  ["a number in place of a line", [1]],
  ["no line with a layer", [{ created_by: "x", empty_layer: true }]],
  ["two lines with a layer", [{ created_by: "x" }, { created_by: "y" }]],
])("a history of a layer with %s is refused", async (_, history) => {
  const request = { image: base, command: "true", history };
  const answer = await engine.fetch("POST", "/v1/instances", request);
  expect({ status: answer.status, text: await answer.text() }).toEqual({
    status: 400,
    text: expect.stringContaining("history must"),
  });
});

test.each<[string, unknown, string]>([
  ["a missing configuration", undefined, "config is missing"],
  ["a list as configuration", [], "config must be an object"],
  ["a field of another type", { Env: "A=1" }, "config Env must be a list of strings"],
  ["a field that is nested too deeply", { Labels: {}, x: nested(40) }, "config x is nested too deeply"],
])("%s is refused", async (_, config, message) => {
  const answer = await configure(base, config);
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain(message);
});

test("responds with 404 for a missing image", async () => {
  expect((await configure(crypto.randomUUID(), {})).status).toBe(404);
});

function nested(depth: number): unknown {
  return depth === 0 ? 1 : { in: nested(depth - 1) };
}
