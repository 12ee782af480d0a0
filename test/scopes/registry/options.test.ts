/** Values of --cache-from, --cache-to and BOUGH_CACHE_REGISTRY. */
import { describe, expect, test } from "bun:test";
import { readScopeOptions } from "../../../src/cli/builds/options/scope-options.ts";
import { sourcesOf, storeOfScope, targetsOf } from "../../../src/cli/cache/cache-stores.ts";
import { parseCaches, parseWrittenCaches } from "../../../src/cli/entries/cache.ts";

const warnings: string[] = [];
const options = {
  environment: {},
  github: { access: new Map(), stores: new Map() },
  option: "--cache-to",
  workingDirectory: "/work",
  warn: (text: string) => void warnings.push(text),
};
const digest = "(-[0-9a-f]{8})";

describe("sources", () => {
  test.each([
    ["main", ["main"], []],
    ["feature/x,main", ["feature/x", "main"], []],
    ["type=registry,ref=host.example/app:main", [], ["docker://host.example/app main"]],
    ["ref=host.example/app", [], ["docker://host.example/app latest"]],
    ["type=registry,ref=app/cache:1", [], ["docker://docker.io/app/cache 1"]],
    ["type=local,src=cache", [], ["dir:/work/cache latest"]],
    ["type=local,src=/c,tag=x", [], ["dir:/c x"]],
    [
      "main,type=registry,ref=h.example/a:1,type=local,src=/c",
      ["main"],
      ["docker://h.example/a 1", "dir:/c latest"],
    ],
    ["type=local,src=/a b", [], ["dir:/a b latest"]],
    ["ref=h.example/a:1,type=registry,type=local,src=/c", [], ["docker://h.example/a 1", "dir:/c latest"]],
    ["", [], []],
  ])("%p", (value, scopes, stores) => {
    const given = sourcesOf(parseCaches(value, options.option), options);
    expect(given.scopes).toEqual(scopes);
    expect(given.stores.map(({ address, tag }) => `${address} ${tag}`)).toEqual(stores);
  });
});

describe("targets", () => {
  test.each([
    ["ref=h.example/a", { mode: "min", compression: "gzip", keepBytes: undefined }],
    [
      "ref=h.example/a,mode=max,compression=zstd,keep=10GB",
      { mode: "max", compression: "zstd", keepBytes: 10e9 },
    ],
    ["ref=h.example/a,keep=1.5GiB", { keepBytes: 1.5 * 1024 ** 3 }],
    [
      "ref=h.example/a,compression=uncompressed,image-manifest=true,oci-mediatypes=true",
      { compression: "none" },
    ],
    [
      "type=local,dest=x,mounts=/a,b,mode=max",
      { mode: "max", mounts: { ids: ["/a", "b"], maxBytes: 2_000_000_000 } },
    ],
    ["ref=h.example/a,mounts=*,mounts-max=1MB", { mounts: { ids: undefined, maxBytes: 1_000_000 } }],
    ["type=local,dest=x", { address: "dir:/work/x", name: "directory:latest" }],
    ["mode=max,ref=h.example/a,type=registry", { mode: "max", address: "docker://h.example/a" }],
  ] as const)("%p", (value, expected) => {
    expect(targetsOf(parseWrittenCaches(value, options.option), options).stores).toMatchObject([expected]);
  });
});

test.each([
  ["type=gha", "type=gha needs ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN"],
  ["type=gha,token=x,url=http://h.example/", "first version of the protocol"],
  ["type=gha,token=x,url_v2=http://h.example/,timeout=long", "timeout takes a duration"],
  ["type=s3,bucket=x", "S3"],
  ["type=azblob", "Azure"],
  ["type=inline", "within the pushed image"],
  ["type=floppy", "unknown type"],
  ["mode=max", "type=registry, type=local or type=gha is missing"],
  ["type=registry", "needs ref"],
  ["type=registry,ref=h.example/a@sha256:00", "--cache-to: not an image reference"],
  ["type=local", "needs dest"],
  ["ref=h.example/a,mode=most", "mode must be min or max"],
  ["ref=h.example/a,compression=lzma", "compression must be"],
  ["ref=h.example/a,keep=much", "keep takes a size"],
  ["ref=h.example/a,mounts=a,mounts-max=much", "mounts-max takes a size"],
  ["ref=h.example/a,mounts-max=1GB", "mounts-max needs mounts"],
  ["ref=h.example/a,color=red", "unknown field color"],
])("%p is refused", (value, message) => {
  expect(() => targetsOf(parseWrittenCaches(value, options.option), options)).toThrow(message);
});

test.each([
  ["main", "^main$"],
  ["v1.2", "^v1\\.2$"],
  ["feature/x", `^feature-x${digest}$`],
  ["pull/12", `^pull-12${digest}$`],
  // It looks like the tag of a scope with a slash.
  ["pull-12-0123abcd", `^pull-12-0123abcd${digest}$`],
  ["-x", `^_x${digest}$`],
])("the tag of scope %p", (scope, pattern) => {
  const { address, tag } = storeOfScope("h.example/a", scope);
  expect(address).toBe("docker://h.example/a");
  expect(tag).toMatch(new RegExp(pattern));
});

test("a level of compression is ignored with a warning", () => {
  const text = "ref=h.example/a,compression=zstd,compression-level=19";
  targetsOf(parseWrittenCaches(text, options.option), options);
  expect(warnings).toEqual([expect.stringContaining("compression-level=19 makes no difference")]);
});

test("capitals in BOUGH_CACHE_REGISTRY, which come from a repository's name, are lowered", () => {
  expect(storeOfScope("ghcr.example/Team/App/cache", "main").address).toBe(
    "docker://ghcr.example/team/app/cache",
  );
});

test("a tag in BOUGH_CACHE_REGISTRY is refused", () => {
  expect(() => storeOfScope("h.example:5000/a:latest", "main")).toThrow("has a tag");
});

test("a registry alone in BOUGH_CACHE_REGISTRY lacks a name", () => {
  expect(() => storeOfScope("localhost:5000", "main")).toThrow("without the name of a repository");
});

test("variables name several caches, separated by spaces or lines", () => {
  const environment = {
    BOUGH_CACHE_FROM: "main\ntype=local,src=c ref=h.example/a:1\n",
    BOUGH_CACHE_TO: " type=local,dest=c  ref=h.example/a:1",
  };
  const runtime = { environment, workingDirectory: "/work" };
  const given = { options: {}, runtime, globals: {}, log: options } as unknown as Parameters<
    typeof readScopeOptions
  >[0];
  const expected = [{ address: "dir:/work/c" }, { address: "docker://h.example/a" }];
  return expect(readScopeOptions(given, undefined)).resolves.toMatchObject({
    ...{ from: ["main"], to: undefined },
    caches: { from: expected, to: expected },
  });
});
