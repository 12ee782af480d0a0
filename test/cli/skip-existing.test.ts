/** `--skip-existing`: what the registry has is neither built nor pulled, and nothing else is skipped. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

let registry: Registry;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
});
afterAll(() => registry.stop());

let directory: string;
let home: string;
/** The repositories of each test, which no other has. */
let place: string;
let count = 0;
beforeEach(() => {
  directory = temporaryDirectory();
  home = temporaryDirectory();
  place = `${registry.host}/test${++count}`;
});

const bough = (...words: string[]) => boughWith({}, ...words);

/** Runs a command, and returns what it has asked of the registry. */
async function boughWith(variables: Record<string, string>, ...words: string[]) {
  const before = registry.requests().length;
  const ended = await runBough(["--local", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: home, ...variables },
  });
  const requests = registry
    .requests()
    .slice(before)
    .filter((request) => request !== "GET /v2/");
  return { ...ended, requests, runs: [...ended.stderr.matchAll(/RUN spawned/g)].length };
}

/** Returns what a tag of this test's `app` names. */
async function manifestOf(tag: string): Promise<{ mediaType: string; annotations?: Record<string, string> }> {
  const url = `http://${place.replace("/", "/v2/")}/app/manifests/${tag}`;
  const accept = ["manifest", "index"].map((type) => `application/vnd.oci.image.${type}.v1+json`).join(", ");
  const response = await fetch(url, { headers: { accept } });
  return JSON.parse(await response.text());
}

const bake = (...words: string[]) => bough("bake", "--push", "--skip-existing", ...words);

function writeBake(targets: Record<string, object>): void {
  writeFiles(directory, { "docker-bake.json": JSON.stringify({ target: targets }) });
}

const dockerfile = (command: string) => `FROM ${registry.host}/base:1\nRUN ${command}\n`;

describe("bake", () => {
  const twoTargets = (tagOf: (name: string) => string) =>
    Object.fromEntries(
      ["one", "two"].map((name) => [
        name,
        { "dockerfile-inline": dockerfile(`echo ${name}`), tags: [`${place}/${tagOf(name)}`] },
      ]),
    );

  test.each([
    ["a tag with the key", (name: string) => `${name}:{key}`, "HEAD"],
    ["another tag", (name: string) => `${name}:latest`, "GET"],
  ])(
    "skips what is there under %s with one request a target, also on an empty home",
    async (_, tagOf, method) => {
      writeBake(twoTargets(tagOf));
      const first = await bake("one", "two");
      expect(first).toMatchObject({ exitCode: 0, runs: 2 });
      for (const each of [home, temporaryDirectory()]) {
        home = each;
        const { exitCode, stdout, requests, runs } = await bake("one", "two", "--format", "json");
        expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: 0 });
        const looked = requests.filter((request) => !request.includes("/base/"));
        expect(looked.map((request) => request.split(" ")[0])).toEqual([method, method]);
        // Of the base, what it is now, and none of its layers.
        expect(requests.length - looked.length).toBe(2);
        const result = JSON.parse(stdout);
        expect(Object.keys(result)).toEqual(["one", "two"]);
        expect(result.one).toMatchObject({
          image: null,
          tags: [expect.stringMatching(/one:(latest|[0-9a-f]{64})$/)],
          digest: expect.stringMatching(/^sha256:/),
        });
      }
    },
  );

  test("builds what has changed, and only that; files about the others have their digests", async () => {
    writeBake(twoTargets((name) => `${name}:1`));
    await bake("one", "two");
    writeBake({
      ...twoTargets((name) => `${name}:1`),
      two: { "dockerfile-inline": dockerfile("echo changed"), tags: [`${place}/two:1`] },
    });
    const changed = await bake(
      ...["one", "two", "--metadata-file", "meta.json", "--results", "results.jsonl"],
    );
    expect(changed).toMatchObject({ exitCode: 0, runs: 1 });
    expect(changed.stderr).toMatch(/\[INFO\] one: already in the registry, as sha256:\w+: it is not built/);
    const metadata = JSON.parse(readFileSync(join(directory, "meta.json"), "utf8"));
    expect(metadata.one).toEqual({
      "containerimage.digest": expect.stringMatching(/^sha256:/),
      "image.name": `${place}/one:1`,
    });
    expect(metadata.two.image).toBeString();
    const lines = readFileSync(join(directory, "results.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const byName = Object.fromEntries(lines.map((line) => [line.target, line]));
    expect(byName.one).toMatchObject({ status: "skipped", digest: metadata.one["containerimage.digest"] });
    expect(byName.two).toMatchObject({ status: "built", key: expect.stringMatching(/^\w{64}$/) });
    expect(await bake("one", "two")).toMatchObject({ exitCode: 0, runs: 0 });
  });

  test("builds what a changed target is made of, and leaves its tag alone", async () => {
    const targets = (command: string) => ({
      lower: { "dockerfile-inline": dockerfile("date +%N > /made"), tags: [`${place}/lower:1`] },
      upper: {
        contexts: { low: "target:lower" },
        "dockerfile-inline": `FROM low\nRUN ${command}\n`,
        tags: [`${place}/upper:1`],
      },
    });
    writeBake(targets("echo first"));
    expect(await bake("lower", "upper")).toMatchObject({ exitCode: 0, runs: 2 });
    expect(await bake("lower", "upper")).toMatchObject({ exitCode: 0, runs: 0 });
    home = temporaryDirectory();
    writeBake(targets("echo second"));
    const changed = await bake("lower", "upper");
    expect(changed).toMatchObject({ exitCode: 0, runs: 2 });
    expect(
      changed.requests.filter((request) => request.startsWith("PUT") && request.includes("/manifests/")),
    ).toEqual([`PUT /v2/test${count}/upper/manifests/1`]);
  });

  test("builds what is only there in another form, or under one of two tags", async () => {
    const target = { "dockerfile-inline": dockerfile("echo x"), tags: [`${place}/app:1`] };
    writeBake({ app: target });
    // Without the option an image has no key, and Docker's bytes.
    expect(await bough("bake", "app", "--push")).toMatchObject({ exitCode: 0 });
    expect(await bake("app")).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("exported to") });
    expect((await bake("app")).stderr).not.toContain("exported to");
    for (const changed of [
      { tags: [`${place}/app:1`, `${place}/app:2`] },
      { labels: { a: "b" } },
      { annotations: ["a=b"] },
      { output: ["type=registry,compression=zstd"] },
      { attest: ["type=provenance"] },
      { args: { BUILDKIT_MULTI_PLATFORM: "1" } },
      {
        platforms: ["linux/amd64", "linux/arm64"],
        "dockerfile-inline": "FROM scratch\nCOPY docker-bake.json /\n",
      },
      { "no-cache": true },
    ]) {
      writeBake({ app: { ...target, ...changed } });
      const { exitCode, stderr } = await bake("app");
      expect({ exitCode, stderr, changed }).toMatchObject({
        exitCode: 0,
        stderr: expect.stringContaining("exported to"),
      });
      const again = await bake("app");
      expect({ changed, isSkipped: !again.stderr.includes("exported to") }).toEqual({
        changed,
        isSkipped: !("no-cache" in changed),
      });
    }
    // What was built without the cache has its key.
    writeBake({ app: target });
    expect((await bake("app")).stderr).not.toContain("exported to");
  });

  test("skips nothing that it can't look for, and wants images that are pushed", async () => {
    writeBake({ app: { "dockerfile-inline": "FROM scratch\nCOPY missing /\n", tags: [`${place}/app:1`] } });
    const { exitCode, stderr } = await bake("app");
    expect({ exitCode, stderr }).toEqual({
      exitCode: (await bough("bake", "app", "--push")).exitCode,
      stderr: expect.stringMatching(
        /target app is built: it can't be looked for: .*missing[\s\S]*\[ERROR\].*missing/,
      ),
    });
    writeBake({ app: { "dockerfile-inline": dockerfile("true"), tags: ["app:1"] } });
    const local = await bough("bake", "app", "--skip-existing");
    expect(local).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("no target is pushed") });
  });
});

describe("build", () => {
  const build = (...words: string[]) =>
    bough("build", "--docker", "--push", "--skip-existing", ".", "-t", `${place}/app:1`, ...words);

  test("builds nothing a second time, and says which image is there", async () => {
    writeFiles(directory, { Dockerfile: dockerfile("echo x") });
    expect(await build("--digest-file", "first")).toMatchObject({ exitCode: 0, runs: 1 });
    home = temporaryDirectory();
    const again = await build("--digest-file", "second", "--format", "json");
    expect(again).toMatchObject({ exitCode: 0, runs: 0 });
    const digest = readFileSync(join(directory, "first"), "utf8");
    expect(readFileSync(join(directory, "second"), "utf8")).toBe(digest);
    expect(JSON.parse(again.stdout)).toMatchObject({ image: null, tags: [`${place}/app:1`], digest });
    expect(again.requests.filter((request) => !request.includes("/base/"))).toEqual([
      `GET /v2/test${count}/app/manifests/1`,
    ]);
    expect(await build("--build-arg", "A=1", "--metadata-file", "meta.json")).toMatchObject({
      exitCode: 0,
      runs: 1,
    });
    for (const forced of [["--no-cache"], ["--no-cache-filter", "0"]]) {
      expect(await build(...forced)).toMatchObject({ exitCode: 0, runs: 1 });
      expect(await build()).toMatchObject({ exitCode: 0, runs: 0 });
    }
  });

  test("finds the key in the index or in the manifest, whichever the tag names", async () => {
    writeFiles(directory, { Dockerfile: dockerfile("echo x") });
    const variables = { BUILDKIT_MULTI_PLATFORM: "1" };
    const words = ["build", "--docker", "--push", "--skip-existing", "."];
    for (const [tag, type, ...options] of [
      ["manifest", "image.manifest"],
      ["named", "image.index", "--build-arg", "BUILDKIT_MULTI_PLATFORM"],
      ["attested", "image.index", "--provenance"],
      ["annotated", "image.manifest", "--annotation", "a=b"],
      ["annotated-index", "image.index", "--annotation", "index:a=b"],
    ] as const) {
      const command = [...words, "-t", `${place}/app:${tag}`, ...options];
      expect(await boughWith(variables, ...command)).toMatchObject({ exitCode: 0 });
      const again = await boughWith(variables, ...command);
      expect({ tag, stderr: again.stderr }).toEqual({ tag, stderr: expect.stringContaining("is not built") });
      const { mediaType, annotations } = await manifestOf(tag);
      expect({ tag, mediaType, annotations }).toEqual({
        ...{ tag, mediaType: expect.stringContaining(type) },
        annotations: expect.objectContaining({ "vnd.bough.content-key": expect.stringMatching(/^\w{64}$/) }),
      });
    }
  });

  test("wants an image that is pushed", async () => {
    writeFiles(directory, { Dockerfile: dockerfile("true") });
    const { exitCode, stderr } = await bough("build", "--docker", "--skip-existing", ".");
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--push") });
  });
});
