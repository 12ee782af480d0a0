/** Images whose layers are not here yet, at the command line and in a build. */
import { Database } from "bun:sqlite";
import { beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: temporaryDirectory() };
const directory = join(environment.BOUGH_HOME, "engine");
const workingDirectory = temporaryDirectory();
const bough = (...words: string[]): Promise<Ended> =>
  runBough(["--local", ...words], { workingDirectory, environment });

beforeAll(async () => {
  await declareAs("distant:1", {});
  await declareAs("forgotten:1", { workingDirectory: "/tmp" });
});

let lost: { store: string; digest: string };

/** Declares a busybox image of its own. */
async function declareAs(tag: string, options: { workingDirectory?: string }): Promise<void> {
  const store = temporaryDirectory();
  const prepare = (root: string) => writeFiles(root, { name: tag });
  await makeBusyboxLayout(store, { ...options, prepare });
  const blob = (digest: string) => Bun.file(join(store, "blobs/sha256", digest.slice(7)));
  const { manifests } = await Bun.file(join(store, "index.json")).json();
  const manifest = await blob(manifests[0].digest).json();
  const configuration = await blob(manifest.config.digest).text();
  const [{ mediaType: media_type, digest, size }] = manifest.layers;
  const layer = { media_type, digest, size, diff_id: JSON.parse(configuration).rootfs.diff_ids[0] };
  const engine = await TestEngine.open({ directory });
  const body = { source: `dir:${store}`, configuration, layers: [layer], tag };
  await engine.json("POST", "/v1/images/remote", body);
  await engine.engine.close();
  lost = { store, digest };
}

test("`images` says how much is still to fetch, and `run` fetches it", async () => {
  const list = async () => JSON.parse((await bough("images", "distant", "-f", "json")).stdout);
  expect(await list()).toMatchObject([{ tag: "distant:1", missing_layers: 1, size: 0 }]);
  expect((await bough("images")).stdout).toMatch(/^IMAGE +TAG +SIZE +TO FETCH +CREATED\n/);
  const { exitCode, stdout, stderr } = await bough("run", "distant:1", "cat", "/name");
  expect([exitCode, stdout]).toEqual([0, "distant:1"]);
  expect(stderr).toMatch(/Fetching 1 layer \(\d\.\d MB\) from dir:/);
  expect(await list()).toMatchObject([{ missing_layers: 0, missing_bytes: 0, size: expect.any(Number) }]);
});

test.each([
  ["run", ["run", "forgotten:1", "true"]],
  ["ls", ["ls", "forgotten:1:/"]],
  ["cp", ["cp", "forgotten:1:/name", "copied"]],
  ["inspect", ["inspect", "forgotten:1"]],
  ["images export", ["images", "export", "forgotten:1", "oci-archive:out.tar"]],
])("%s says which layer can't be fetched, from where and why, and removes nothing", async (_name, words) => {
  rmSync(join(lost.store, "blobs"), { recursive: true, force: true });
  const { exitCode, stderr } = await bough(...words);
  expect(exitCode).toBe(1);
  for (const part of [lost.digest, `dir:${lost.store}`, "has no blob"]) expect(stderr).toContain(part);
  expect((await bough("images", "forgotten", "-q")).stdout).not.toBe("");
});

test("a build makes a layer again that can't be fetched", async () => {
  const dockerfile = (last: string) => `FROM distant:1\nRUN echo 1 > /one\nRUN echo 2 > /two\nRUN ${last}\n`;
  writeFiles(workingDirectory, { Dockerfile: dockerfile("true") });
  expect((await bough("build")).exitCode).toBe(0);
  // As if the two layers came from a registry, which has forgotten the upper one.
  const database = new Database(join(directory, "engine.db"));
  const layers = database
    .query<{ id: number }, []>("SELECT id FROM layers WHERE content IS NULL ORDER BY depth")
    .all();
  const digest = `sha256:${"0".repeat(64)}`;
  for (const { id } of layers) {
    rmSync(join(directory, "layers", id.toString(36)), { recursive: true });
    database.run("INSERT INTO absent_layers VALUES (?, 0, 'dir:/none', 'x', ?, 1, ?, NULL)", [
      id,
      digest,
      digest,
    ]);
  }
  database.close();
  writeFiles(workingDirectory, { Dockerfile: dockerfile("cat /one /two") });
  const { exitCode, stderr } = await bough("build");
  expect([layers.length, exitCode]).toEqual([2, 0]);
  expect(stderr).toContain("\n1\n2\n");
});
