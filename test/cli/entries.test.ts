/** What options with fields mean: the text of a command line, and that text or an object in a bake file, make the same data. */
import { describe, expect, test } from "bun:test";
import {
  entryFields,
  readTargetEntries,
  type TargetAgent,
  type TargetEntry,
  type TargetSecret,
} from "../../src/cli/bake/target-entries.ts";
import { agentOf, parseAgent } from "../../src/cli/entries/agent.ts";
import { attestationOf, parseAttestation, parseAttestationOf } from "../../src/cli/entries/attestation.ts";
import { cacheOf, parseCaches, parseWrittenCaches, writtenCacheOf } from "../../src/cli/entries/cache.ts";
import { contextOf, parseContext } from "../../src/cli/entries/context.ts";
import { outputOf, parseOutput } from "../../src/cli/entries/output.ts";
import { parseSecret, secretOf } from "../../src/cli/entries/secret.ts";

function inBakeFile<Fields>(field: string, value: unknown): Fields {
  const [entry] = readTargetEntries(field, [value], { file: "docker-bake.json", path: [] });
  return entry as Fields;
}

describe("--secret", () => {
  test.each([
    ["id=token", { id: "token" }, { id: "token", kind: "by-id" }],
    ["id=token,src=a.txt", { id: "token", src: "a.txt" }, { id: "token", kind: "file", path: "a.txt" }],
    ["id=token,source=a.txt", { id: "token", source: "a.txt" }, { id: "token", kind: "file", path: "a.txt" }],
    [
      'id=token,"src=a,b.txt"',
      { id: "token", src: "a,b.txt" },
      { id: "token", kind: "file", path: "a,b.txt" },
    ],
    ["id=token,env=TOKEN", { id: "token", env: "TOKEN" }, { id: "token", kind: "variable", name: "TOKEN" }],
    [
      "type=env,id=token,src=TOKEN",
      { type: "env", id: "token", src: "TOKEN" },
      { id: "token", kind: "variable", name: "TOKEN" },
    ],
  ])("%s", (text, object, entry) => {
    expect(parseSecret(text)).toEqual(entry as ReturnType<typeof parseSecret>);
    for (const value of [text, object])
      expect(secretOf(inBakeFile<TargetSecret>("secret", value))).toEqual(parseSecret(text));
  });
});

describe("--ssh", () => {
  test.each([
    ["default", { id: "default" }, { id: "default", paths: [] }],
    ["default=", { id: "default", paths: [""] }, { id: "default", paths: [] }],
    ["git=agent.sock", { id: "git", paths: ["agent.sock"] }, { id: "git", paths: ["agent.sock"] }],
    ["git=a.key,b.key", { id: "git", paths: ["a.key", "b.key"] }, { id: "git", paths: ["a.key", "b.key"] }],
  ])("%s", (text, object, entry) => {
    expect(parseAgent(text)).toEqual(entry);
    for (const value of [text, object]) expect(agentOf(inBakeFile<TargetAgent>("ssh", value))).toEqual(entry);
  });

  test("an object's path may have a comma", () => {
    expect(agentOf(inBakeFile<TargetAgent>("ssh", { paths: ["keys,old/id"] }))).toEqual({
      id: "default",
      paths: ["keys,old/id"],
    });
  });
});

describe("--build-context", () => {
  test.each([
    ["lib=../lib", { name: "lib", kind: "place", text: "../lib" }],
    [
      "lib=https://host.invalid/a.tar?x=y",
      { name: "lib", kind: "place", text: "https://host.invalid/a.tar?x=y" },
    ],
    [
      "base=docker-image://alpine:3",
      { name: "base", kind: "image", reference: "alpine:3", text: "docker-image://alpine:3" },
    ],
    [
      "base=oci-layout://a/b:1",
      { name: "base", kind: "layout", image: { path: "a/b", tag: "1" }, text: "oci-layout://a/b:1" },
    ],
  ])("%s", (text, entry) => {
    const at = text.indexOf("=");
    expect(parseContext(text)).toEqual(entry as ReturnType<typeof parseContext>);
    expect(contextOf(text.slice(0, at), text.slice(at + 1))).toEqual(parseContext(text));
  });
});

describe("--cache-from and --cache-to", () => {
  const writing = {
    mode: "min",
    compression: "gzip",
    compressionLevel: undefined,
    keepBytes: undefined,
    mounts: undefined,
  };
  test.each([
    ["type=registry,ref=host.example/a:1", { kind: "registry", reference: "host.example/a:1" }],
    ["type=local,src=c,dest=c,tag=1", undefined],
    ["type=gha,scope=main", { kind: "gha", fields: { scope: "main" } }],
    ["type=s3,bucket=b", { kind: "unsupported", type: "s3" }],
  ])("%s", (text, entry) => {
    const fields = entryFields(inBakeFile<TargetEntry>("cache-from", text));
    if (entry === undefined) {
      expect(() => parseCaches(text, "--cache-from")).toThrow("--cache-from: unknown field dest");
      expect(() => cacheOf(fields, "--cache-from")).toThrow("--cache-from: unknown field dest");
      return;
    }
    expect(parseCaches(text, "--cache-from")).toEqual([entry as ReturnType<typeof cacheOf>]);
    expect([cacheOf(fields, "--cache-from")]).toEqual(parseCaches(text, "--cache-from"));
    const written = entry.kind === "unsupported" ? entry : { ...entry, writing };
    expect(parseWrittenCaches(text, "--cache-to")).toEqual([written as ReturnType<typeof writtenCacheOf>]);
    expect([writtenCacheOf(fields, "--cache-to")]).toEqual(parseWrittenCaches(text, "--cache-to"));
  });

  test("several in one value", () => {
    expect(parseCaches("main,type=local,src=c,type=local,src=d,feature/x", "--cache-from")).toEqual([
      { kind: "scope", name: "main" },
      { kind: "local", path: "c", tag: undefined },
      { kind: "local", path: "d", tag: undefined },
      { kind: "scope", name: "feature/x" },
    ]);
    expect(parseCaches("", "--cache-from")).toEqual([{ kind: "none" }]);
  });

  test("an object's path may have a comma", () => {
    const fields = entryFields(inBakeFile<TargetEntry>("cache-from", { type: "local", src: "a,b" }));
    expect(cacheOf(fields, "--cache-from")).toEqual({ kind: "local", path: "a,b", tag: undefined });
  });
});

describe("--attest", () => {
  const provenance = { hasArguments: false, builderId: undefined, isInlineOnly: false };
  test.each([
    ["type=provenance,mode=min", "mode=min", { kind: "provenance", options: provenance }],
    ["type=provenance,disabled=true", "false", { kind: "provenance", options: undefined }],
    ["type=sbom", "true", { kind: "sbom", options: { generator: undefined } }],
    [
      "type=sbom,generator=scanner:1,DEPTH=2",
      "generator=scanner:1,DEPTH=2",
      { kind: "sbom", options: { generator: { image: "scanner:1", variables: { DEPTH: "2" } } } },
    ],
    [
      'type=sbom,generator=scanner:1,"ONLY=a,b"',
      'generator=scanner:1,"ONLY=a,b"',
      { kind: "sbom", options: { generator: { image: "scanner:1", variables: { ONLY: "a,b" } } } },
    ],
  ] as const)("%s", (text, own, entry) => {
    expect(parseAttestation(text)).toEqual(entry as ReturnType<typeof parseAttestation>);
    expect(parseAttestationOf(entry.kind, own)).toEqual(parseAttestation(text));
    const fields = entryFields(inBakeFile<TargetEntry>("attest", text));
    expect(attestationOf(fields, text)).toEqual(parseAttestation(text));
  });
});

describe("--output", () => {
  test.each([
    ["out", { type: "local", dest: "out" }],
    ["-", { type: "tar", dest: "-" }],
    ["type=oci,dest=a.tar,compression=zstd", { type: "oci", dest: "a.tar", compression: "zstd" }],
    ['type=image,"name=a:1,b:2",push=true', { type: "image", names: ["a:1", "b:2"], isPushed: true }],
    ["type=registry,push-by-digest=true", { type: "registry", byDigest: true, names: undefined }],
    ["type=local,dest=d,platform-split=false", { type: "local", splitsPlatforms: false }],
    ["type=oci,dest=x,annotation.a=b", { givenAnnotations: ["manifest:a=b"], unknown: [] }],
    ["type=oci,dest=x,color=red", { unknown: ["color"] }],
  ])("%s", (text, entry) => {
    expect(parseOutput(text)).toMatchObject(entry);
    expect(outputOf(entryFields(inBakeFile<TargetEntry>("output", text)), text)).toEqual(parseOutput(text));
  });
});
