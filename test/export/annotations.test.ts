/** `bough build --annotation`: which part of a written or pushed image has it, and what is refused. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
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
  expect(list.annotations).toEqual({ both: "1", "org.opencontainers.image.ref.name": "1" });
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
  ["an index that is not written", "index:a=1", oci, "no index is written, since the image has one platform"],
  ["a descriptor in a registry", "manifest-descriptor:a=1", push, "a registry keeps no such descriptor"],
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
