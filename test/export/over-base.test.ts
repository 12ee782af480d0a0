/** An image of a service without layers is exported as its base's layers, from the registry, and one with the difference. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readTree, type Tree } from "../differential/tree.ts";
import { hideExtensions } from "../docker/plain-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const temporary = join(places, "temporary");
const [maker, state, taker] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
let registry: Registry;
let engine: TestEngine;
let service: ReturnType<typeof Bun.serve>;
let tree: Tree;

/** The changes that a layer can make to another one. */
const changes = [
  "echo new > /made/new && echo more >> /base/changed && rm /base/gone && rm -r /base/tree",
  "rm -r /base/becomes-file && echo x > /base/becomes-file && rm /base/becomes-dir && mkdir /base/becomes-dir",
  "echo y > /base/becomes-dir/y && chmod 600 /base/mode && chown 7:8 /base/owner && touch -d @77 /base/time",
  "ln -sf other /base/link && ln /base/first /base/third && mkfifo /base/pipe && rm -r /base/emptied/*",
].join(" && ");

const run = async (environment: Record<string, string>, words: readonly string[]) => {
  const ended = await runBough(words, { workingDirectory: places, environment });
  if (ended.exitCode !== 0) throw new Error(`bough ${words.join(" ")}: ${ended.stderr}`);
  return ended;
};
const local = (home: string, ...words: string[]) => run({ BOUGH_HOME: home }, ["--local", "-q", ...words]);
const remote = (...words: string[]) =>
  run(
    { BOUGH_HOME: state, TMPDIR: temporary, CONTREE_URL: service.url.href, CONTREE_TOKEN: "t0ken-t0ken" },
    words,
  );

function sh(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: places });
  if (!success) throw new Error(stderr.toString());
  return stdout.toString();
}

function layersOf(image: string): string[] {
  return JSON.parse(sh("skopeo", "inspect", "--tls-verify=false", image)).Layers;
}

beforeAll(async () => {
  mkdirSync(temporary);
  registry = await Registry.start();
  engine = await TestEngine.open();
  const answer = hideExtensions((request) => engine.engine.fetch(request));
  service = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer });
  await local(maker, "images", "import", await makeBusyboxLayout(join(places, "first")), "--tag", "first:1");
  writeFiles(join(places, "base"), {
    Dockerfile: [
      "FROM first:1",
      "RUN mkdir -p /base/tree/a/b /base/becomes-file/x /base/emptied && cd /base && touch gone changed mode owner time " +
        "becomes-dir first tree/a/b/c emptied/one emptied/two hidden && ln first second && ln -s target link",
      "WORKDIR /base",
      "ENV BASE=1",
      "RUN rm -r /base/emptied && mkdir /base/emptied && touch /base/emptied/three && rm /base/hidden",
    ].join("\n"),
  });
  await local(maker, "build", "base", "--tag", "base:1");
  await local(maker, "push", "base:1", `${registry.host}/base:1`);
  writeFiles(join(places, "context"), {
    Dockerfile: `FROM ${registry.host}/base:1\nENV OWN=2\nRUN mkdir /made\nRUN ${changes}\n`,
  });
  await remote("build", "context", "--tag", "app:1");
  await remote("images", "export", "app:1", "tar:whole.tar");
  tree = await readTree(Bun.file(join(places, "whole.tar")).stream());
});
afterAll(async () => {
  await Promise.all([service?.stop(true), registry?.stop()]);
  await engine?.close();
});

describe("an image is exported as its base's layers and one more", () => {
  test.each([
    "oci:layout:1",
    "oci-archive:archive.tar:1",
    "docker-archive:docker.tar:app:1",
    "dir:directory",
  ])("with the same files: %s", async (place) => {
    const { stderr } = await remote("images", "export", "app:1", place);
    expect(stderr).not.toContain("WARN");
    expect(readdirSync(temporary)).toEqual([]);
    if (place.startsWith("oci:")) {
      expect(problemsOfLayout(join(places, "layout"))).toEqual([]);
      const layers = layersOf(place);
      expect(layers.slice(0, -1)).toEqual(layersOf(`docker://${registry.host}/base:1`));
      expect(layers).toHaveLength(4);
      const config = JSON.parse(sh("skopeo", "inspect", "--config", place));
      expect(config.config.Env).toEqual([expect.stringMatching(/^PATH=/), "BASE=1", "OWN=2"]);
      expect(config.config.WorkingDir).toBe("/base");
      const lines = config.history.map(({ created_by }: { created_by: string }) => created_by);
      expect(lines.filter((line: string) => line.includes("echo new > /made/new"))).toHaveLength(1);
      expect(lines.filter((line: string) => line.includes("rm /base/hidden"))).toHaveLength(1);
      const own = join(places, "layout/blobs/sha256", layers.at(-1)?.replace("sha256:", "") ?? "");
      const names = Bun.spawnSync(["tar", "-tzf", own]).stdout.toString().split("\n");
      expect(names.filter((name) => name.includes(".wh.")).join(" ")).toContain("base/.wh.gone");
      expect(names.filter((name) => /busybox/.test(name))).toEqual([]);
    }
    const home = temporaryDirectory();
    const from = place.replace(/^([a-z-]+:)/, `$1${places}/`);
    await local(home, "images", "import", from, "--tag", "back:1");
    await local(home, "images", "export", "back:1", `tar:back-${place.split(":")[0]}.tar`);
    const back = await readTree(Bun.file(join(places, `back-${place.split(":")[0]}.tar`)).stream());
    expect(back).toEqual(tree);
  });

  test("of which a push sends only the last one, and a second push nothing", async () => {
    const name = `${registry.host}/app:1`;
    await remote("push", "app:1", name);
    const layers = layersOf(`docker://${name}`);
    expect(layers).toHaveLength(4);
    const requests = registry.requests();
    // The registry has the base's layers in another repository.
    const mounted = layers
      .slice(0, -1)
      .map((digest) => `POST /v2/app/blobs/uploads/?from=base&mount=${encodeURIComponent(digest)}`);
    expect(requests.filter((request) => request.includes("mount=")).sort()).toEqual(mounted.sort());
    // The last layer and the configuration.
    expect(requests.filter((request) => request.startsWith("PUT /v2/app/blobs/"))).toHaveLength(2);
    const { stderr } = await remote("push", "app:1", name);
    expect(stderr).toContain("already in the registry: 4 of 4 layers");
    const further = registry.requests().slice(requests.length);
    expect(further.filter((request) => /^(POST|PATCH|PUT) (?!.*manifests)/.test(request))).toEqual([]);
    await local(taker, "images", "import", name);
  });

  test("even if it was built on such an image", async () => {
    writeFiles(join(places, "again"), { Dockerfile: "FROM app:1\nRUN echo again > /again\n" });
    await remote("build", "again", "--tag", "again:1");
    await remote("images", "export", "again:1", "oci:again-layout:1");
    const base = layersOf(`docker://${registry.host}/base:1`);
    expect(layersOf("oci:again-layout:1").slice(0, -1)).toEqual(base);
  });
});

test("an image is exported as one layer, with a warning, if the registry no longer has its base", async () => {
  const gone = await Registry.start();
  await local(maker, "push", "base:1", `${gone.host}/gone:1`);
  writeFiles(join(places, "gone"), { Dockerfile: `FROM ${gone.host}/gone:1\nRUN echo > /x\n` });
  await remote("build", "gone", "--tag", "gone:1");
  await gone.stop();
  const { stderr } = await remote("images", "export", "gone:1", "oci:gone-layout:1");
  expect(stderr).toContain(
    "[WARN] the image is exported as one layer, because the layers of its base cannot be fetched: skopeo:",
  );
  expect(layersOf("oci:gone-layout:1")).toHaveLength(1);
  expect(readdirSync(temporary)).toEqual([]);
});
