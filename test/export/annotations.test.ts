/** `bough build --annotation`: which part of a written or pushed image has it, and what is refused. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { openLocalBough } from "../support/local-bough.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const bough = await openLocalBough();
let registry: Registry;

const build = (...words: string[]) => bough(places, "build", "context", "--docker", ...words);

beforeAll(async () => {
  registry = await Registry.start();
  writeFiles(join(places, "context"), { Dockerfile: "FROM base:1\nCOPY Dockerfile /\n" });
});
afterAll(() => registry.stop());

interface Part {
  mediaType: string;
  digest: string;
  manifests?: Part[];
  annotations?: Record<string, string>;
}

/** The list of images, what it names, and the manifest. */
function partsOf(layout: string): { list: Part; image: Part; manifest: Part } {
  const read = (path: string): Part => JSON.parse(readFileSync(join(places, layout, path), "utf8"));
  const blob = ({ digest }: Part) => read(`blobs/sha256/${digest.replace("sha256:", "")}`);
  const [list = { mediaType: "", digest: "" }] = read("index.json").manifests ?? [];
  const image = blob(list);
  const [first] = image.manifests ?? [];
  return { list, image, manifest: first === undefined ? image : blob(first) };
}

const all = "manifest,manifest-descriptor,index,index-descriptor:everywhere=x";

test("the manifest has an annotation, and its descriptor if that is asked for", async () => {
  const words = [
    "b=2=3",
    "a=",
    "manifest:with:colon=http://x y/",
    "manifest,manifest-descriptor:both=1",
    "a=1",
  ];
  const options = words.flatMap((word) => ["--annotation", word]);
  const { exitCode, stderr } = await build(
    "-o",
    "type=oci,dest=plain,tar=false",
    "--tag",
    "app:1",
    ...options,
  );
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  const { list, manifest } = partsOf("plain");
  expect(Object.entries(manifest.annotations ?? {})).toEqual([
    ["a", "1"],
    ["b", "2=3"],
    ["both", "1"],
    ["with:colon", "http://x y/"],
  ]);
  expect(list.annotations).toEqual({
    both: "1",
    "io.containerd.image.name": "docker.io/library/app:1",
    "org.opencontainers.image.ref.name": "1",
  });
  expect(problemsOfLayout(join(places, "plain"))).toEqual([]);
});

test("an index that lists attestations has annotations, and so have its descriptors", async () => {
  const words = [all, "index:i=1", "index-descriptor:id=1", "manifest-descriptor:md=1", "m=1"];
  const options = words.flatMap((word) => ["--annotation", word]);
  const { exitCode, stderr } = await build("-o", "type=oci,dest=whole,tar=false", "--provenance", ...options);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  const { list, image, manifest } = partsOf("whole");
  expect(list.annotations).toEqual({ everywhere: "x", id: "1" });
  expect(image.annotations).toEqual({ everywhere: "x", i: "1" });
  expect(image.manifests?.[0]?.annotations).toEqual({ everywhere: "x", md: "1" });
  expect(manifest.annotations).toEqual({ everywhere: "x", m: "1" });
  expect(problemsOfLayout(join(places, "whole"))).toEqual([]);
});

test("a registry has the annotations; other outputs of the build go without", async () => {
  const name = `${registry.host}/team/app:1`;
  const platform = process.arch === "arm64" ? "linux/aarch64" : "linux/x86_64";
  const words = ["--annotation", `manifest[${platform}]:a=1`, "-o", "type=docker,dest=docker.tar"];
  const { exitCode, stderr } = await build("--tag", name, "--push", ...words);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  const inspect = ["skopeo", "inspect", "--raw", "--tls-verify=false", `docker://${name}`];
  expect(JSON.parse(Bun.spawnSync(inspect).stdout.toString()).annotations).toEqual({ a: "1" });
});

test("an annotation of an index, or of a descriptor that only an index has, makes one", async () => {
  const name = `${registry.host}/team/index:1`;
  const options = ["--annotation", "index:i=1", "--annotation", "manifest-descriptor:md=1"];
  const built = await build("-o", "type=oci,dest=made,tar=false", "--push", "--tag", name, ...options);
  expect(built.exitCode).toBe(0);
  const inspect = ["skopeo", "inspect", "--raw", "--tls-verify=false", `docker://${name}`];
  for (const image of [partsOf("made").image, JSON.parse(Bun.spawnSync(inspect).stdout.toString())]) {
    expect(image.annotations).toEqual({ i: "1" });
    expect(image.manifests).toHaveLength(1);
    expect(image.manifests[0].annotations).toEqual({ md: "1" });
    expect(image.manifests[0].platform).toMatchObject({ os: "linux" });
  }
  expect(problemsOfLayout(join(places, "made"))).toEqual([]);
});

test("an output has annotations of its own, which those of --annotation replace", async () => {
  const words = ["-o", "type=oci,dest=own,tar=false,annotation.own=1,annotation.both=1"];
  const other = ["-o", "type=oci,dest=other,tar=false", "--annotation", "both=2"];
  expect((await build(...words, ...other)).exitCode).toBe(0);
  expect(partsOf("own").manifest.annotations).toEqual({ both: "2", own: "1" });
  expect(partsOf("other").manifest.annotations).toEqual({ both: "2" });
});

describe("oci-mediatypes=false", () => {
  const docker = (kind: string) => `application/vnd.docker.${kind}`;

  test("writes and pushes Docker's media types, with annotations, as BuildKit does", async () => {
    const name = `${registry.host}/team/types:1`;
    const fields = "oci-mediatypes=false,annotation.a=b";
    const words = ["-o", `type=oci,dest=types,tar=false,${fields}`, "-o", `type=registry,${fields}`];
    expect((await build("--tag", name, ...words)).exitCode).toBe(0);
    const expected = {
      mediaType: docker("distribution.manifest.v2+json"),
      config: { mediaType: docker("container.image.v1+json") },
      annotations: { a: "b" },
    };
    const { list, manifest } = partsOf("types");
    expect(list.mediaType).toBe(expected.mediaType);
    expect(manifest).toMatchObject(expected);
    const inspect = ["skopeo", "inspect", "--raw", "--tls-verify=false", `docker://${name}`];
    const pushed = JSON.parse(Bun.spawnSync(inspect).stdout.toString());
    expect(pushed).toMatchObject(expected);
    const types = new Set((pushed.layers as Part[]).map(({ mediaType }) => mediaType));
    expect([...types]).toEqual([docker("image.rootfs.diff.tar.gzip")]);
    // What is there is an image to others.
    const pull = [
      "skopeo",
      "copy",
      "-q",
      "--src-tls-verify=false",
      `docker://${name}`,
      `dir:${places}/pulled`,
    ];
    expect(Bun.spawnSync(pull).exitCode).toBe(0);
  });

  test.each([
    [
      "an index of several platforms",
      ["--platform", "linux/amd64,linux/arm64"],
      docker("distribution.manifest.list.v2+json"),
    ],
    ["attestations have OCI's", ["--provenance"], "application/vnd.oci.image.index.v1+json"],
  ])("%s", async (_, words, mediaType) => {
    writeFiles(join(places, "empty"), { Dockerfile: "FROM scratch\nCOPY Dockerfile /\n" });
    const output = `type=oci,dest=${words[0]},tar=false,oci-mediatypes=false`;
    const built = await bough(places, "build", "empty", "--docker", ...words, "-o", output);
    expect(built.exitCode).toBe(0);
    const { list, image } = partsOf(words[0] ?? "");
    expect([list.mediaType, image.mediaType]).toEqual([mediaType, mediaType]);
  });

  test("layers in zstd, which Docker has no type for, have OCI's", async () => {
    const output = "type=oci,dest=zstd,tar=false,oci-mediatypes=false,compression=zstd";
    expect((await build("-o", output)).exitCode).toBe(0);
    expect(partsOf("zstd").manifest.mediaType).toBe("application/vnd.oci.image.manifest.v1+json");
  });
});

const needsForm = "--annotation needs an image that is written in OCI form or pushed";
const oci = ["-o", "type=oci,dest=refused.tar"];
const push = ["--push", "--tag", "registry.invalid/app:1"];
test.each<[string, string, string[], string]>([
  ["nothing is written", "a=1", [], needsForm],
  ["only Docker's form is written", "a=1", ["-o", "type=docker,dest=refused.tar"], needsForm],
  ["no value", "a", oci, '--annotation takes KEY=VALUE, not "a"'],
  ["no key", "=1", oci, '--annotation takes KEY=VALUE, not "=1"'],
  ["a space in the key", "a b=1", oci, '--annotation takes KEY=VALUE, not "a b=1"'],
  ["an unknown type", "config:a=1", oci, 'unknown type "config", expected manifest, manifest-descriptor,'],
  [
    "an index's descriptor in a registry",
    "index-descriptor:a=1",
    [...push, "--sbom"],
    "a registry keeps no such descriptor",
  ],
  ["an index with a platform", "index[linux/amd64]:a=1", [...oci, "--sbom"], "index takes no platform"],
  ["an invalid platform", "manifest[a/b/c/d]:a=1", oci, '[a/b/c/d]:a=1: invalid platform "a/b/c/d"'],
  [
    "another platform",
    "manifest[linux/s390x]:a=1",
    oci,
    "--annotation for linux/s390x: the image is for linux/",
  ],
])("refused before anything is built: %s", async (_, annotation, options, message) => {
  const before = readdirSync(places);
  const { exitCode, stderr } = await build("--annotation", annotation, ...options);
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  expect(stderr).not.toContain("FROM");
  expect(readdirSync(places)).toEqual(before);
});
