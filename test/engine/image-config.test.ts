/** An image's configuration in the engine, from its import to the responses for later builds. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "../../src/database.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { describeImage } from "../../src/engine/records/image-list.ts";
import type { ImageConfig } from "../../src/image/config.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const whole: ImageConfig & { Hostname: string } = {
  User: "1000:50",
  ExposedPorts: { "80/tcp": {}, "53/udp": {} },
  Env: ["PATH=/usr/bin:/bin", "OWN=a=b", "BARE"],
  Entrypoint: ["/init", "--"],
  Cmd: ["serve"],
  Volumes: { "/data": {} },
  WorkingDir: "/srv/app",
  Labels: { "org.example.name": "it" },
  StopSignal: "SIGQUIT",
  Healthcheck: { Test: ["CMD-SHELL", "true"], Interval: 30_000_000_000, Retries: 3 },
  OnBuild: ["RUN make"],
  Shell: ["/bin/ash", "-ec"],
  ArgsEscaped: true,
  Hostname: "of others",
};

const { engine, base } = await openSharedEngine({ configuration: { ...whole } });

const recordsOf = async (query: string) =>
  (await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images${query}`)).images;
const configOf = async (uuid: string) => (await recordsOf(`?uuid=${uuid}`))[0]?.oci_config;

test("an imported image's whole configuration is reported, and the extension is announced", async () => {
  expect(await configOf(base)).toEqual(whole);
  const { extensions } = await engine.json<{ extensions: string[] }>("GET", "/v1/whoami");
  expect(extensions).toContain("config");
});

test("a command gets the image's ENV and WORKDIR, and its result has the whole configuration", async () => {
  const run = { image: base, command: "mkdir -p new; echo $(pwd) $OWN [$BARE]", shell: true };
  const made = await engine.finish(await engine.json("POST", "/v1/instances", { ...run, disposable: false }));
  expect(made.metadata?.result?.stdout?.value).toBe("/srv/app a=b []\n");
  expect(await configOf(made.result_image_uuid ?? "")).toEqual(whole);
});

test("preserve_env replaces only Env", async () => {
  const kept = {
    command: "true",
    shell: true,
    disposable: false,
    preserve_env: true,
    env: { OWN: "1", NEW: "2" },
  };
  const made = await engine.finish(await engine.json("POST", "/v1/instances", { image: base, ...kept }));
  expect(await configOf(made.result_image_uuid ?? "")).toEqual({
    ...whole,
    Env: ["PATH=/usr/bin:/bin", "OWN=1", "BARE=", "NEW=2"],
  });
});

test("a list has configurations only if its query names an image", async () => {
  for (const name of ["app", "app:latest", "app-two:1"])
    await engine.json("PATCH", `/v1/images/${base}/tag`, { tag: name });
  const taggedWithConfig = async (query: string) =>
    (await recordsOf(query)).filter((image) => image.oci_config !== undefined).map(({ tag }) => tag);
  expect(await taggedWithConfig("?tag=app")).toEqual(["app", "app:latest"]);
  expect(await taggedWithConfig("?tag=app-")).toEqual([]);
  expect(await taggedWithConfig("")).toEqual([]);
});

test.each<[string, Record<string, unknown>, string]>([
  ["a string in place of a list", { Env: "A=b" }, "Env must be a list of strings"],
  ["a number as a label's value", { Labels: { a: 1 } }, "Labels must be an object whose values are strings"],
])("an import with %s is refused", async (_name, configuration, problem) => {
  const url = await makeBusyboxLayout(temporaryDirectory(), { configuration });
  const operation = await engine.finish(
    await engine.json("POST", "/v1/images/import", { registry: { url } }),
  );
  expect(operation).toMatchObject({
    status: "FAILED",
    error: expect.stringContaining(`is malformed: ${problem}`),
  });
});

test("records of older versions are migrated, and damaged ones stay invalid", () => {
  const path = join(temporaryDirectory(), "engine.db");
  const old = openDatabase(path, migrations.slice(0, 3));
  old.run("INSERT INTO layers (depth, created_at) VALUES (1, 0)");
  const add = (uuid: string, config: string) =>
    old.run("INSERT INTO images (uuid, layer, config, created_at) VALUES (?, 1, ?, 0)", [uuid, config]);
  const env = { PATH: "/bin", QUOTED: 'it\'s "ä"=\n', EMPTY: "" };
  add(
    "whole",
    JSON.stringify({ env, workingDirectory: "/srv", user: "7", onbuild: ["RUN a", "RUN b"], shell: ["/sh"] }),
  );
  add("bare", JSON.stringify({ env: {}, onbuild: [], shell: [] }));
  add("first", JSON.stringify({ env: { A: "1" } }));
  for (const damaged of ["", "{", "[]", "7"]) add(`damaged ${damaged}`, damaged);
  old.close();

  const database = openDatabase(path, migrations);
  const configOfRecord = (uuid: string) => describeImage(database, uuid, null).oci_config;
  expect(configOfRecord("whole")).toEqual({
    Env: ["PATH=/bin", 'QUOTED=it\'s "ä"=\n', "EMPTY="],
    WorkingDir: "/srv",
    User: "7",
    OnBuild: ["RUN a", "RUN b"],
    Shell: ["/sh"],
  });
  expect(configOfRecord("bare")).toEqual({ Env: [], OnBuild: [], Shell: [] });
  expect(configOfRecord("first")).toEqual({ Env: ["A=1"] });
  for (const damaged of ["", "{", "[]", "7"])
    expect(() => configOfRecord(`damaged ${damaged}`)).toThrow("there is no image");
  database.close();
});
