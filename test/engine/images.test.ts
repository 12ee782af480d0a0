import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { TestEngine } from "../support/engine.ts";

let engine: TestEngine;
let base: string;
/** Images from the oldest to the newest. */
const made: string[] = [];
let now = Date.parse("2030-01-01T00:00:00Z");

beforeAll(async () => {
  engine = await TestEngine.open({ clock: { ...systemClock, now: () => now } });
  base = await engine.importBase("busybox:latest");
  for (let day = 1; day <= 3; day++) {
    now += 86_400_000;
    made.push((await engine.run(base, `echo ${day} > /day`)).image ?? "");
  }
});

afterAll(() => engine.close());

const list = async (query = "") =>
  (await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images${query}`)).images;
const uuids = async (query: string) => (await list(query)).map(({ uuid }) => uuid);
const tag = (uuid: string, name: unknown) => engine.fetch("PATCH", `/v1/images/${uuid}/tag`, { tag: name });

describe("the list of images", () => {
  test("has the newest first, with UUIDs and tags", async () => {
    const [newest] = await list();
    expect(newest).toEqual({
      uuid: made[2] ?? "",
      tag: null,
      created_at: "2030-01-04T00:00:00.000Z",
      operation_uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      platform: expect.stringMatching(/^linux\//),
    });
    expect(await uuids("")).toEqual([...made, base].sort((a, b) => made.indexOf(b) - made.indexOf(a)));
  });

  test.each([
    ["tag matches a prefix", "?tag=busy", () => [base]],
    ["tag does not match inside a name", "?tag=box", () => []],
    ["an underscore in tag is no wildcard", "?tag=_usybox", () => []],
    ["tagged", "?tagged=1", () => [base]],
    ["uuid", () => `?uuid=${made[1]}`, () => [made[1]]],
    ["several UUIDs", () => `?uuid=${made[1]},${base.toUpperCase()}`, () => [made[1], base]],
    ["since", "?since=2030-01-03T00:00:00Z", () => [made[2], made[1]]],
    ["until, in seconds", `?until=${Date.parse("2030-01-02T00:00:00Z") / 1000}`, () => [made[0], base]],
    ["limit", "?limit=2", () => [made[2], made[1]]],
    ["offset", "?limit=2&offset=2", () => [made[0], base]],
    ["an offset past the end", "?offset=9", () => []],
  ])("%s", async (_name, query, expected) => {
    expect(await uuids(typeof query === "string" ? query : query())).toEqual(expected() as string[]);
  });

  test.each([
    ["limit=0", "limit must be a number from 1 to 1000"],
    ["limit=1001", "limit must be a number from 1 to 1000"],
    ["offset=-1", "offset must be a number from 0"],
    ["since=yesterday", "since must be an ISO 8601 date"],
  ])("%s is refused", async (query, message) => {
    const response = await engine.fetch("GET", `/v1/images?${query}`);
    expect(await response.json()).toEqual({ error: expect.stringContaining(message), status: 400 });
  });
});

describe("tags", () => {
  test("setting a tag responds with the image; setting it on another image moves it", async () => {
    const response = await tag(made[0] ?? "", "app:dev");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ uuid: made[0], tag: "app:dev" });
    await tag(made[1] ?? "", "app:dev");
    expect(await uuids("?tag=app:dev")).toEqual([made[1] ?? ""]);
  });

  test("an image can have several tags", async () => {
    await tag(base, "same:latest");
    expect(await uuids("?tag=busybox:latest")).toEqual([base]);
    expect(await uuids("?tag=same:latest")).toEqual([base]);
  });

  test("untag takes all of an image's tags", async () => {
    await tag(made[2] ?? "", "one:1");
    await tag(made[2] ?? "", "two:2");
    const response = await engine.fetch("DELETE", `/v1/images/${made[2]}/tag`);
    expect(response.status).toBe(204);
    expect(await uuids("?tag=one:1")).toEqual([]);
    expect((await list(`?uuid=${made[2]}`)).map((image) => image.tag)).toEqual([null]);
  });

  test.each(["a", "-", "name:1.2_3", "host.example:5000/a/b-c:tag"])("%p is valid", async (name) => {
    expect((await tag(made[0] ?? "", name)).status).toBe(200);
  });

  test.each(["Upper:1", "a b", "", "a::b", ":a", "a:", "a/../b", "x".repeat(257)])(
    "%p is invalid",
    async (name) => {
      expect((await tag(made[0] ?? "", name)).status).toBe(400);
    },
  );

  test("tagging an unknown image is 404", async () => {
    const response = await tag("00000000-0000-0000-0000-000000000000", "a:b");
    expect(await response.json()).toEqual({
      error: "there is no image 00000000-0000-0000-0000-000000000000",
      status: 404,
    });
    expect((await engine.fetch("DELETE", "/v1/images/nope/tag")).status).toBe(404);
  });
});

test("ids may be in capitals", async () => {
  const capitals = base.toUpperCase();
  expect(await uuids(`?uuid=${capitals}`)).toContain(base);
  const { uuid, sha256 } = await engine.upload("in capitals");
  const files = { "/f": { uuid: uuid.toUpperCase(), uid: 0, gid: 0, mode: "0644" } };
  expect((await engine.run(capitals, "cat /f", { files })).stdout).toBe("in capitals");
  const operation = await engine.start({ image: capitals, command: "true" });
  for (const path of [
    `/v1/files/${sha256.toUpperCase()}`,
    `/v1/inspect/${capitals}/`,
    `/v1/operations/${operation.uuid.toUpperCase()}`,
  ])
    expect((await engine.fetch("GET", path)).status).toBe(200);
});
