/**
 * What docker's actions for GitHub read of a builder (docker/actions-toolkit): versions, metadata files, provenances, the history for the
 * summary of a build.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { startGithubCache } from "../support/github-cache.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(60_000);

const program = compileBough();
const home = temporaryDirectory();
const plugin = join(home, "docker-buildx");
const app = join(home, "app");

let registry: Registry;
beforeAll(async () => {
  symlinkSync(program, plugin);
  writeFiles(app, {
    Dockerfile:
      "FROM scratch\nARG TOKEN\nARG COLOUR=red\nCOPY f /f\nFROM scratch AS second\nCOPY --from=0 /f /g\nMAINTAINER me\n",
    f: "1",
    "bad.Dockerfile": "FROM scratch\nCOPY missing /f\n",
  });
  registry = await Registry.start();
});
afterAll(() => registry.stop());

/** The variables with which docker's actions call buildx. */
const actions = { BUILDX_METADATA_WARNINGS: "true" };

async function buildx(words: readonly string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([plugin, ...words], {
    cwd: app,
    env: { PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state"), ...environment },
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
  });
  return endOf(child);
}

async function build(words: readonly string[], environment: Record<string, string> = actions) {
  const file = join(home, "metadata.json");
  const built = await buildx(["build", "--metadata-file", file, ...words, "."], environment);
  const metadata = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  return { ...built, metadata };
}

const push = (name: string) => ["--push", "-t", `${registry.host}/${name}:1`];

async function manifestsOf(
  name: string,
): Promise<{ digest: string; annotations?: Record<string, string> }[]> {
  const types = ["index", "manifest"].map((kind) => `application/vnd.oci.image.${kind}.v1+json`);
  const response = await fetch(`http://${registry.host}/v2/${name}/manifests/1`, {
    headers: { accept: types.join(",") },
  });
  return ((await response.json()) as { manifests?: [] }).manifests ?? [];
}

describe("versions", () => {
  test("of the builder and of buildx are those that the actions ask for", async () => {
    const { stdout } = await buildx(["version"]);
    const [, version = ""] = /\sv?([0-9a-f]{7}|[0-9.]+)/.exec(stdout) ?? [];
    expect(Bun.semver.satisfies(version, ">=0.24.0")).toBe(true);
    const inspected = (await buildx(["inspect", "--bootstrap", "--builder", "builder-1"])).stdout;
    const [, buildkit = ""] = /^BuildKit version: *(\S+)$/m.exec(inspected) ?? [];
    expect(Bun.semver.satisfies(buildkit, ">=0.11.0")).toBe(true);
    // With this driver, the actions leave attestations out.
    expect(inspected).not.toMatch(/^Driver: *docker$/m);
  });
});

describe("a pushed image", () => {
  test.each([
    ["default", [], {}, true],
    ["no-sbom", ["--sbom=false"], {}, true],
    ["none", ["--provenance=false"], {}, false],
    ["disabled", ["--attest", "type=provenance,disabled=true"], {}, false],
    ["environment", [], { BUILDX_NO_DEFAULT_ATTESTATIONS: "1" }, false],
  ] as const)("has a provenance as from docker's builder: %s", async (name, words, environment, hasIt) => {
    const built = await build([...push(name), "--iidfile", join(home, "iid"), ...words], environment);
    expect(built.exitCode, built.stderr).toBe(0);
    const types = (await manifestsOf(name)).map(
      ({ annotations }) => annotations?.["vnd.docker.reference.type"] ?? "image",
    );
    expect(types).toEqual(hasIt ? ["image", "attestation-manifest"] : []);
    // As in docker, the id of an index is its digest.
    const { "containerimage.digest": digest, "containerimage.config.digest": config } = built.metadata;
    expect(readFileSync(join(home, "iid"), "utf8")).toBe(hasIt ? digest : config);
    expect(config === undefined).toBe(hasIt);
  });

  test("has no values of build arguments in it, and other outputs have no provenance", async () => {
    const oci = join(home, "image.oci");
    const words = ["--build-arg", "COLOUR=blue", "-o", `type=oci,dest=${oci},tar=false`];
    expect((await build([...push("minimal"), ...words])).exitCode).toBe(0);
    const shown = await buildx([
      "imagetools",
      "inspect",
      "--format",
      "{{json .Provenance}}",
      `${registry.host}/minimal:1`,
    ]);
    expect(shown.stdout).toContain('"COLOUR"');
    expect(shown.stdout).not.toContain("blue");
    const index = JSON.parse(readFileSync(join(oci, "index.json"), "utf8"));
    expect(index.manifests).toMatchObject([{ mediaType: "application/vnd.oci.image.manifest.v1+json" }]);
  });

  test("of bake likewise", async () => {
    const file = (attest: string) =>
      `target "default" {
  tags = ["${registry.host}/baked${attest === "" ? "" : "-not"}:1"]
  ${attest}
}`;
    writeFiles(app, {
      "docker-bake.hcl": file(""),
      "not.hcl": file('attest = ["type=provenance,disabled=true"]'),
    });
    const metadata = join(home, "bake.json");
    const baked = await buildx(["bake", "--push", "--metadata-file", metadata]);
    expect(baked.exitCode, baked.stderr).toBe(0);
    expect(await manifestsOf("baked")).toHaveLength(2);
    const { default: target } = JSON.parse(readFileSync(metadata, "utf8"));
    expect(target["buildx.build.ref"]).toMatch(/^default\/default\/\w+$/);
    expect(target["buildx.build.provenance"].invocation.configSource).toEqual({ entryPoint: "Dockerfile" });
    expect((await buildx(["bake", "-f", "not.hcl", "--push"])).exitCode).toBe(0);
    expect(await manifestsOf("baked-not")).toEqual([]);
  });
});

describe("a metadata file", () => {
  test("has the build's reference, its provenance and its warnings, without secrets", async () => {
    const words = ["--build-arg", "COLOUR=blue", "--build-arg", "TOKEN=hidden-value", "--label", "a=b"];
    const { metadata, stderr } = await build([...words, "--target", "second"]);
    expect(metadata, stderr).toMatchObject({
      "buildx.build.provenance": {
        builder: { id: "" },
        buildType: "urn:bough:dockerfile:v1",
        invocation: {
          configSource: { entryPoint: "Dockerfile" },
          parameters: {
            frontend: "dockerfile.v0",
            args: { "build-arg:COLOUR": "blue", "label:a": "b", target: "second" },
            locals: [{ name: "context" }, { name: "dockerfile" }],
          },
          environment: { platform: "linux/amd64" },
        },
      },
    });
    expect(JSON.stringify(metadata)).not.toContain("hidden-value");
    expect(metadata["buildx.build.provenance"].metadata).toBeUndefined();
    const [warning, ...others] = metadata["buildx.build.warnings"].filter(({ url }: { url: string }) =>
      url.endsWith("/maintainer-deprecated/"),
    );
    expect(others).toEqual([]);
    expect(atob(warning.short)).toMatch(/^MaintainerDeprecated: .*\(line 7\)$/);
    expect(atob(warning.detail.join(""))).toContain("The MAINTAINER instruction is deprecated");
    expect(atob(warning.sourceInfo.data)).toBe(readFileSync(join(app, "Dockerfile"), "utf8"));
    expect(warning).toMatchObject({
      sourceInfo: { filename: "Dockerfile" },
      range: [{ start: { line: 7 } }],
    });
  });

  test.each([
    [{ BUILDX_METADATA_PROVENANCE: "max" }, { completeness: { parameters: true } }],
    [{ BUILDX_METADATA_PROVENANCE: "min" }, undefined],
    [{ BUILDX_METADATA_PROVENANCE: "other" }, undefined],
  ])("has the provenance that %j asks for, and no warnings", async (environment, expected) => {
    const { metadata } = await build([], environment);
    const { metadata: details } = metadata["buildx.build.provenance"];
    if (expected === undefined) expect(details).toBeUndefined();
    else expect(details).toMatchObject(expected);
    expect(metadata["buildx.build.warnings"]).toBeUndefined();
  });

  test.each(["disabled", "false", "0"])("has none with BUILDX_METADATA_PROVENANCE=%s", async (mode) => {
    const { metadata } = await build([], { BUILDX_METADATA_PROVENANCE: mode });
    expect(Object.keys(metadata)).not.toContain("buildx.build.provenance");
    expect(metadata["buildx.build.ref"]).toMatch(/^default\/default\/\w+$/);
  });

  test("of several platforms has a provenance for each", async () => {
    const { metadata, stderr } = await build(["--platform", "linux/amd64,linux/arm64", ...push("platforms")]);
    for (const platform of ["linux/amd64", "linux/arm64"])
      expect(metadata[`buildx.build.provenance/${platform}`], stderr).toMatchObject({
        invocation: { environment: { platform } },
      });
  });
});

/** The words with which docker/build-push-action calls buildx in a public repository, with the cache of its documentation. */
test("the recipe with GitHub's cache builds once, and pushes a provenance that names the run", async () => {
  await using cache = startGithubCache();
  const run = "https://github.example/team/app/actions/runs/1/attempts/1";
  const words = [
    ...["build", "--build-arg", "COLOUR=blue", "--builder", "builder-1"],
    ...["--cache-from", "type=gha,scope=app", "--cache-to", "type=gha,scope=app,mode=max"],
    ...[
      "--iidfile",
      join(home, "iid"),
      "--label",
      "org.opencontainers.image.title=app",
      "--platform",
      "linux/amd64",
    ],
    ...["--attest", `type=provenance,mode=max,builder-id=${run}`, "--tag", `${registry.host}/recipe:1`],
    ...["--metadata-file", join(home, "recipe.json"), "--push", app],
  ];
  const environment = { ...actions, ...cache.environmentFor("refs/heads/main") };
  for (const machine of ["first", "second"]) {
    const built = await buildx(words, { ...environment, BOUGH_HOME: join(home, machine) });
    expect(built.exitCode, built.stderr).toBe(0);
    // The second machine has what the first has sent.
    const { steps } = JSON.parse(readFileSync(join(home, "recipe.json"), "utf8"));
    const copies = steps.filter(({ instruction }: { instruction: string }) => instruction.startsWith("COPY"));
    const cached = copies.map((step: { cached: boolean }) => step.cached);
    expect(cached).toEqual(Array(2).fill(machine === "second"));
  }
  expect(await manifestsOf("recipe")).toHaveLength(2);
  const format = ["--format", "{{json .Provenance}}"];
  const { stdout } = await buildx(["imagetools", "inspect", ...format, `${registry.host}/recipe:1`]);
  expect(stdout).toContain(run);
  expect(stdout).toContain("blue");
});

describe("the summary of a build", () => {
  /** What docker's action does after a build, with the reference that it has found. */
  async function summarize(reference: string) {
    const [builder = "", , id = ""] = reference.split("/");
    const inspected = await buildx(["history", "inspect", "--format", "json", "--builder", builder, id]);
    const path = join(home, `${id}.dockerbuild`);
    const words = ["history", "export", "--builder", builder, "--output", path, id, "--finalize"];
    const exported = await buildx(words);
    expect(exported.exitCode, exported.stderr).toBe(0);
    return { inspected: JSON.parse(inspected.stdout), files: await filesOf(path) };
  }

  async function filesOf(path: string): Promise<Map<string, Uint8Array>> {
    const archive = new Bun.Archive(Bun.gunzipSync(readFileSync(path)));
    const files = await archive.files();
    return new Map(
      await Promise.all([...files].map(async ([name, file]) => [name, await file.bytes()] as const)),
    );
  }

  const json = (files: Map<string, Uint8Array>, name: string) =>
    JSON.parse(Buffer.from(files.get(name) ?? "").toString());
  const blob = (digest: string) => `blobs/sha256/${digest.replace("sha256:", "")}`;

  test("finds the build by the metadata, and exports its record, its output and its provenance", async () => {
    const { metadata } = await build(["--builder", "builder-2", "--target", "second"]);
    const reference = metadata["buildx.build.ref"];
    expect(reference).toMatch(/^builder-2\/builder-2\/\w+$/);
    const { inspected, files } = await summarize(reference);
    expect(inspected).toMatchObject({ Name: "app (second)", Status: "completed", NumTotalSteps: 2 });
    const index = json(files, "index.json");
    const manifest = json(files, blob(index.manifests[0].digest));
    expect(manifest.config.mediaType).toBe("application/vnd.buildkit.historyrecord.v0");
    expect(json(files, blob(manifest.config.digest))).toMatchObject({
      ...{
        Ref: reference.split("/")[2],
        FrontendAttrs: { target: "second" },
        DefaultPlatform: "linux/amd64",
      },
      localState: { LocalPath: app, DockerfilePath: "Dockerfile" },
    });
    expect(manifest.layers.map(({ mediaType }: { mediaType: string }) => mediaType)).toEqual([
      "application/vnd.buildkit.status.v0",
      "application/vnd.in-toto+json",
    ]);
    const log = files.get(blob(manifest.layers[0].digest)) ?? new Uint8Array();
    expect(new DataView(log.buffer, log.byteOffset).getUint32(0, true)).toBe(log.byteLength - 4);
    expect(Buffer.from(log).toString("latin1")).toContain("COPY --from=0 /f /g");
  });

  test("of a build that has failed is found where docker notes builds", async () => {
    const directory = temporaryDirectory();
    const failed = await buildx(["build", "-f", "bad.Dockerfile", "."], {
      ...actions,
      BUILDX_CONFIG: directory,
    });
    expect(failed.exitCode).toBe(1);
    const notes = join(directory, "refs/default/default");
    const [id = ""] = readdirSync(notes);
    expect(JSON.parse(readFileSync(join(notes, id), "utf8"))).toEqual({
      ...{ Target: "default", LocalPath: app, DockerfilePath: join(app, "bad.Dockerfile") },
    });
    const { inspected, files } = await summarize(`default/default/${id}`);
    expect(inspected).toMatchObject({
      Status: "failed",
      Error: { Message: expect.stringContaining("missing") },
    });
    const manifest = json(files, blob(json(files, "index.json").manifests[0].digest));
    expect(json(files, blob(manifest.config.digest))).toMatchObject({ error: { code: 2 } });
  });

  test.each(["docker's", "bough's"])(
    "a build's note goes with %s history rm, and no other",
    async (whose) => {
      const directory = temporaryDirectory();
      const environment = { ...actions, BUILDX_CONFIG: directory, BUILDX_BUILDER: "mine" };
      for (let count = 0; count < 2; count++)
        await buildx(["build", "-f", "bad.Dockerfile", "."], environment);
      const notes = join(directory, "refs/mine/mine");
      const [id = "", other = ""] = readdirSync(notes);
      writeFiles(directory, { "refs/mine/mine/ofbuildx": "{}", "refs/default/default/ofbuildx": "{}" });
      const child = Bun.spawn([whose === "docker's" ? plugin : program, "history", "rm", id], {
        env: { HOME: home, BOUGH_HOME: join(home, "state"), BUILDX_CONFIG: directory },
        ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
      });
      const removed = await endOf(child);
      expect(removed.exitCode, removed.stderr).toBe(0);
      expect(readdirSync(notes).sort()).toEqual([other, "ofbuildx"].sort());
      expect(readdirSync(join(directory, "refs/default/default"))).toEqual(["ofbuildx"]);
    },
  );

  test("of several builds is one archive", async () => {
    const path = join(home, "all.dockerbuild");
    expect((await buildx(["history", "export", "--all", "-o", path])).exitCode).toBe(0);
    const files = await filesOf(path);
    const top = json(files, "index.json").manifests[0];
    expect(top.mediaType).toBe("application/vnd.oci.image.index.v1+json");
    const { manifests } = json(files, blob(top.digest));
    expect(manifests.length).toBeGreaterThan(2);
    expect(manifests[0].annotations["vnd.buildkit.history.reference"]).toMatch(/^\w+$/);
  });

  test.each([
    [["--all", "^0"], "cannot specify refs when using --all"],
    [["-o", "x", "nothing"], 'no record found for ref "nothing"'],
    [["-o", "/nowhere/x"], "/nowhere"],
  ])("%j is refused", async (words, message) => {
    const { exitCode, stderr } = await buildx(["history", "export", ...words]);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
