/**
 * `docker buildx imagetools` of images that are the same bytes everywhere. Each file of `test/cases/imagetools` has a command line, an
 * argument a line, and behind `---` what docker buildx 0.29.1 prints. HOST is the registry, FILES a directory.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { putImages } from "../support/registry-images.ts";

setDefaultTimeout(60_000);

const program = compileBough();
const cases = join(import.meta.dir, "../cases/imagetools");
const files = temporaryDirectory();
const plugin = join(files, "docker-buildx");

let registry: Registry;
beforeAll(async () => {
  symlinkSync(program, plugin);
  registry = await Registry.start();
  await putImages(registry.host);
  const digest = (await digestOf("app:amd64")) ?? "";
  writeFiles(files, {
    digest,
    "descriptor.json": JSON.stringify({
      ...{ mediaType: "application/vnd.oci.image.manifest.v1+json", digest, annotations: { added: "yes" } },
      platform: { os: "linux", architecture: "amd64", variant: "v3" },
    }),
    "wrong-size.json": JSON.stringify({ digest, size: 3 }),
  });
});
afterAll(() => registry.stop());

async function run(words: readonly string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([...words], {
    env: { PATH: process.env.PATH ?? "", HOME: files, BOUGH_HOME: join(files, "state"), ...environment },
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
  });
  return endOf(child);
}

const imagetools = (...words: string[]) => run([plugin, "imagetools", ...words]);

async function manifest(name: string, method = "GET") {
  const [, repository = "", reference = ""] = /^(.*?)[:@]([^:]+|sha256:.+)$/.exec(name) ?? [];
  const accept = ["index", "manifest"].map((kind) => `application/vnd.oci.image.${kind}.v1+json`).join(",");
  const dockers = ["manifest.list", "manifest"].map(
    (kind) => `application/vnd.docker.distribution.${kind}.v2+json`,
  );
  return fetch(`http://${registry.host}/v2/${repository}/manifests/${reference}`, {
    ...{ method, headers: { accept: [accept, ...dockers].join(",") } },
  });
}

const digestOf = async (name: string) =>
  (await manifest(name, "HEAD")).headers.get("docker-content-digest") ?? undefined;

const given = (word: string) => word.replaceAll("HOST", registry.host).replaceAll("FILES", files);

describe("prints what buildx prints", () => {
  test.each(readdirSync(cases))("%s", async (name) => {
    const text = readFileSync(join(cases, name), "utf8");
    const end = text.indexOf("\n---\n");
    const { stdout, stderr, exitCode } = await imagetools(...text.slice(0, end).split("\n").map(given));
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toBe(given(text.slice(end + "\n---\n".length)));
  });
});

describe("create", () => {
  test("writes what --dry-run prints under each tag, after all that it names", async () => {
    const sources = ["HOST/app:nested", "HOST/team/old:list"].map(given);
    const { stdout } = await imagetools("create", "--dry-run", ...sources);
    const tags = ["HOST/all:1", "HOST/team/all:2"].map(given);
    const made = await imagetools("create", ...tags.flatMap((tag) => ["-t", tag]), ...sources);
    expect(made).toMatchObject({ exitCode: 0, stdout: "" });
    for (const repository of ["all:1", "team/all:2"]) {
      const response = await manifest(repository);
      expect(`${await response.text()}\n`).toBe(stdout);
      expect(response.headers.get("content-type")).toBe("application/vnd.oci.image.index.v1+json");
    }
    // The index in the index is there with its image, whose layer and configuration are, too.
    const inner = await digestOf("app:inner");
    expect((await manifest(`all@${inner}`)).status).toBe(200);
    const amd64 = (await (await manifest("app:amd64")).json()) as { config: { digest: string } };
    const blob = await fetch(`http://${registry.host}/v2/all/blobs/${amd64.config.digest}`, {
      method: "HEAD",
    });
    expect(blob.status).toBe(200);
  });

  test("Docker's manifests are in Docker's list, unless it is to have annotations", async () => {
    const [one, other] = ["HOST/team/old:amd64", "HOST/team/old:arm64"].map(given);
    const tag = given("HOST/team/old:joined");
    await imagetools("create", "-t", tag, one ?? "", other ?? "");
    expect(await digestOf("team/old:joined")).toBeDefined();
    const { headers } = await manifest("team/old:joined");
    expect(headers.get("content-type")).toBe("application/vnd.docker.distribution.manifest.list.v2+json");
    await imagetools("create", "-t", tag, "--annotation", "index:a=b", one ?? "", other ?? "");
    expect(await (await manifest("team/old:joined")).json()).toMatchObject({
      mediaType: "application/vnd.oci.image.index.v1+json",
      annotations: { a: "b" },
    });
  });

  test("bough index create and inspect take NAME:TAG@DIGEST, of which the digest counts, and --platform", async () => {
    const digest = await digestOf("app:1");
    const name = `${registry.host}/app:none@${digest}`;
    const index = (...words: string[]) => runBough(["index", ...words], { workingDirectory: files });
    expect((await index("inspect", name, "--raw")).stdout).toBe(await (await manifest("app:1")).text());
    const [all, one] = [given("HOST/pinned:all"), given("HOST/pinned:one")];
    expect(await index("create", all, name)).toMatchObject({ exitCode: 0 });
    expect(await digestOf("pinned:all")).toBe(digest);
    expect(await index("create", one, name, "--platform", "linux/arm64")).toMatchObject({ exitCode: 0 });
    const { manifests } = (await (await manifest("pinned:one")).json()) as { manifests: unknown[] };
    expect(manifests).toMatchObject([
      { platform: { architecture: "arm64" } },
      { annotations: { "vnd.docker.reference.type": "attestation-manifest" } },
    ]);
  });

  test.each([
    ["", "no sources specified"],
    ["HOST/app:1", "can't push with no tags specified, please set --tag or --dry-run"],
    ["--dry-run HOST/app:nope", "HOST/app:nope: not found"],
    ["--append -t HOST/nope:1 HOST/app:1", "HOST/nope:1: not found"],
    ["--dry-run sha256:12", 'failed to parse source "sha256:12", valid sources are digests, references and'],
    ["--dry-run {}", 'failed to parse source "{}", valid sources are digests, references and descriptors: '],
    ["--dry-run -f FILES/digest", "no repositories specified, please set a reference in tag or source"],
    ["--dry-run -f FILES/digest -t HOST/a:1 -t HOST/b:1", "multiple repositories specified, cannot infer "],
    ["--dry-run -f FILES/wrong-size.json -t HOST/app:x", "bytes, not the 3 of its descriptor"],
    ["--dry-run -f FILES/nope HOST/app:1", "cannot read FILES/nope: no such file"],
    ["--dry-run --platform linux/s390x HOST/app:1", "none of the manifests match the provided platforms"],
    ["--dry-run --platform linux/arm64 HOST/app:amd64", "none of the manifests match the provided platforms"],
    ["-t HOST/app@sha256:0 HOST/app:1", '@sha256:0" is not '],
  ])("%s is refused", async (line, message) => {
    const words = line === "" ? [] : line.split(" ").map(given);
    const { stdout, stderr, exitCode } = await imagetools("create", ...words);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    expect(stderr).toStartWith("ERROR: ");
    expect(stderr).toContain(given(message));
  });
});

describe("inspect", () => {
  test("--format {{.Manifest.Digest}} is the digest, as in newer releases of buildx", async () => {
    const digest = await digestOf("app:1");
    const name = `${registry.host}/app:1`;
    expect((await imagetools("inspect", name, "--format", "{{.Manifest.Digest}}")).stdout).toBe(digest ?? "");
  });

  test.each<[string[], string, string]>([
    [["HOST/app:nope"], "HOST/app:nope: not found", ""],
    [["--raw", "--format", "{{.}}", "HOST/app:1"], "format and raw cannot be used together", ""],
    [["--format", "{{nope}}", "HOST/app:1"], 'template: :1: function "nope" not defined', ""],
    // What comes before is printed.
    [
      ["--format", "{{.Name}} {{.Nope}}", "HOST/app:1"],
      'template: :1:12: executing "" at <.Nope>: can\'t evaluate field Nope in type imagetools.tplInputs',
      "HOST/app:1 ",
    ],
    [
      ["--format", "{{.Image.Nope}}", "HOST/app:amd64"],
      'executing "" at <.Image.Nope>: can\'t evaluate field Nope in type *v1.Image',
      "",
    ],
    [
      ["--format", "{{(index .Manifest.Manifests 9).Digest}}", "HOST/app:1"],
      "error calling index: index out of range: 9",
      "",
    ],
  ])("%j is an error", async (words, message, output) => {
    const { stdout, stderr, exitCode } = await imagetools("inspect", ...words.map(given));
    expect({ stdout, exitCode }).toEqual({ stdout: given(output), exitCode: 1 });
    expect(stderr).toStartWith("ERROR: ");
    expect(stderr).toContain(given(message));
  });
});

test("docker's recipe: a machine for each platform pushes by digest, and imagetools joins them", async () => {
  writeFiles(files, { "app/Dockerfile": "FROM scratch\nARG TARGETARCH\nCOPY $TARGETARCH /f\n" });
  writeFiles(files, { "app/amd64": "1", "app/arm64": "2", "digests/.keep": "" });
  const name = given("HOST/recipe");
  for (const architecture of ["amd64", "arm64"]) {
    const state = join(files, `state-${architecture}`);
    const metadata = join(files, `${architecture}.json`);
    const built = await run(
      [
        plugin,
        "build",
        "--platform",
        `linux/${architecture}`,
        "-t",
        name,
        "--metadata-file",
        metadata,
      ].concat(["-o", "type=image,push-by-digest=true,name-canonical=true,push=true", join(files, "app")]),
      { BOUGH_HOME: state },
    );
    expect(built).toMatchObject({ exitCode: 0, stdout: "" });
    const { "image.name": known, "containerimage.digest": digest } = JSON.parse(
      readFileSync(metadata, "utf8"),
    );
    expect(known).toBe(name);
    writeFiles(join(files, "digests"), { [digest.slice("sha256:".length)]: "" });
  }
  // No tag until all are joined.
  expect((await fetch(`http://${registry.host}/v2/recipe/tags/list`)).status).toBe(404);
  const digests = readdirSync(join(files, "digests")).filter((each) => each !== ".keep");
  const sources = digests.map((digest) => `${name}@sha256:${digest}`);
  const joined = await imagetools("create", "-t", `${name}:1`, "-t", `${name}:latest`, ...sources);
  expect(joined).toMatchObject({ exitCode: 0, stdout: "" });
  const format = "{{range .Manifest.Manifests}}{{.Platform.Architecture}} {{end}}";
  const { stdout } = await imagetools("inspect", "--format", format, `${name}:latest`);
  // Beside each image is its provenance.
  expect(stdout.trim().split(" ").toSorted()).toEqual(["amd64", "arm64", "unknown", "unknown"]);
});
