import { expect, test } from "bun:test";
import { openDatabase } from "../../../src/database.ts";
import { migrations } from "../../../src/engine/engine-directory.ts";
import { makeLayout } from "../../../src/engine/layout.ts";
import { imagesInUse } from "../../../src/engine/records/operations.ts";
import type { InstanceMount } from "../../../src/service/wire/mount.ts";
import { openInput, TestEngine } from "../../support/engine.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";
import { expectRefusal } from "../refused-request.ts";

const { engine, base } = await openSharedEngine();

test("the extensions are announced, ssh-mounts only to a client in the same process", async () => {
  const announced = async (asked: TestEngine) =>
    (await asked.json<{ extensions: string[] }>("GET", "/v1/whoami")).extensions;
  expect(await announced(engine)).toEqual(expect.arrayContaining(["mounts", "ssh-mounts"]));
  const served = await TestEngine.open({ isServer: true });
  try {
    const extensions = await announced(served);
    expect(extensions).toContain("mounts");
    expect(extensions).not.toContain("ssh-mounts");
    const mounts = [{ type: "ssh", target: "/agent", agent: "/run/agent" }];
    const answer = await served.fetch("POST", "/v1/instances", { image: "tag:a:1", command: "true", mounts });
    expect(answer.status).toBe(403);
  } finally {
    await served.close();
  }
});

test("a server neither fills caches nor shows them", async () => {
  const served = await TestEngine.open({ isServer: true });
  try {
    const contents = { source: "dir:/x", digest: `sha256:${"0".repeat(64)}`, size: 1 };
    const request = { image: "tag:a:1", command: "true", mounts: [{ ...cache, contents }] };
    expect((await served.fetch("POST", "/v1/instances", request)).status).toBe(403);
    expect((await served.fetch("GET", `/v1/caches/${"0".repeat(64)}`)).status).toBe(403);
  } finally {
    await served.close();
  }
});

const bind = { type: "bind", target: "/m", image: "BASE", source: "/" };
const cache = { type: "cache", target: "/m", id: "x", sharing: "shared" };
const secret = { type: "secret", target: "/m", value: "czNjcmV0" };
const file = { uuid: "UUID" };

test.each<[what: string, mounts: unknown, status: number, message: string]>([
  ["an object as mounts", bind, 400, "mounts must be a list"],
  ["too many mounts", Array.from({ length: 1001 }, () => secret), 400, "mounts must be at most 1000"],
  [
    "contents without a digest",
    [{ ...cache, contents: { source: "dir:/x", size: 1 } }],
    400,
    "contents.digest",
  ],
  ["an unknown type", [{ ...bind, type: "volume" }], 400, "mounts[0].type must be bind, cache"],
  ["no type", [{ target: "/m" }], 400, "type is missing"],
  ["an unknown field", [bind, { ...bind, from: "x" }], 400, "mounts[1].from is not a known field"],
  ["a relative target", [{ ...bind, target: "m" }], 400, "mounts[0].target must be an absolute path"],
  [
    "the root as target",
    [{ ...bind, target: "/./" }],
    400,
    "mounts[0].target must not be the root directory",
  ],
  ["a NUL", [{ ...bind, source: "/\0" }], 400, "mounts[0].source must not contain a NUL character"],
  ["an unknown image", [{ ...bind, image: "nobody" }], 404, "there is no image nobody"],
  [
    "an unknown file",
    [{ type: "bind", target: "/m", files: { a: { uuid: "x" } } }],
    404,
    "there is no file x",
  ],
  [
    "files of the engine's machine",
    [{ type: "bind", target: "/m", host_files: [] }],
    400,
    "mounts[0].host_files is not a known field",
  ],
  [
    "a file for the target itself together with others",
    [{ type: "bind", target: "/m", files: { "": file, a: file } }],
    400,
    'mounts[0].files has the path "", which is allowed only as the only path',
  ],
  [
    "a link for the target itself",
    [{ type: "bind", target: "/m", files: {}, entries: { "": { type: "symlink", target: "/" } } }],
    400,
    'mounts[0].entries must only have a directory with the path ""',
  ],
  ["a cache without an id", [{ ...cache, id: undefined }], 400, "id is missing"],
  [
    "an unknown sharing",
    [{ ...cache, sharing: "some" }],
    400,
    "mounts[0].sharing must be shared, private or locked",
  ],
  ["an invalid mode", [{ ...cache, mode: "9" }], 400, 'not "9"'],
  ["an owner that is not a number", [{ ...cache, uid: "root" }], 400, "uid must be a whole number"],
  ["a size of 0", [{ type: "tmpfs", target: "/m", size: 0 }], 400, "size must be a whole number"],
  [
    "an invalid variable name",
    [{ ...secret, env: "A=B" }],
    400,
    "mounts[0].env must be the name of a variable",
  ],
  [
    "a variable's value that is not UTF-8",
    [{ ...secret, value: "/w==", env: "A" }],
    400,
    "mounts[0].value must be UTF-8 text",
  ],
  [
    "a relative path of an agent",
    [{ type: "ssh", target: "/m", agent: "x" }],
    400,
    "mounts[0].agent must be an absolute path",
  ],
])("%s is refused", (_, mounts, status, message) =>
  expectRefusal(engine, { image: base, mounts }, status, message),
);

test("an error about a secret does not contain it", async () => {
  const mounts = [{ ...secret, value: "no*base64*at*all" }];
  const response = await engine.fetch("POST", "/v1/instances", { image: base, command: "true", mounts });
  const text = await response.text();
  expect(text).toContain("mounts[0].value must be base64");
  expect(text).not.toContain("no*base64");
});

test("mounts without a command are refused", async () => {
  const body = { image: base, command: "", copies: [], mounts: [secret] };
  expect((await engine.fetch("POST", "/v1/instances", body)).status).toBe(400);
});

test("the operation's record has mounts without secrets and lists of files", async () => {
  const { uuid } = await engine.upload("content");
  const mounts: InstanceMount<string>[] = [
    { type: "bind", target: "/a", image: base, source: "/etc", readonly: true },
    { type: "bind", target: "/b", files: { x: { uuid, uid: 0, gid: 0, mode: "0644" } }, readonly: true },
    { type: "secret", target: "/s", value: "czNjcmV0", env: "VALUE" },
  ];
  const { operation } = await engine.run(base, "true", { mounts });
  expect(operation.metadata?.mounts).toEqual([
    mounts[0],
    { type: "bind", target: "/b", readonly: true },
    { type: "secret", target: "/s", env: "VALUE" },
  ]);
});

test("a mounted image is in use until the operation ends", async () => {
  const source = (await engine.run(base, "touch /source")).image ?? "";
  const started = await engine.start({
    image: base,
    command: "read line",
    stdin: openInput,
    mounts: [
      { type: "bind", target: "/m", image: source, source: "/", readonly: true },
      {
        type: "cache",
        target: "/c",
        id: "x",
        sharing: "shared",
      },
    ],
  });
  const database = openDatabase(`${engine.directory}/engine.db`, migrations);
  const records = { database, layout: makeLayout(engine.directory) };
  expect(imagesInUse(records)).toEqual(new Set([base, source]));
  await engine.closeInput(started);
  await engine.finish(started);
  expect(imagesInUse(records)).toEqual(new Set());
  database.close();
});
