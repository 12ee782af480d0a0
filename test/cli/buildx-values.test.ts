/** Values of options that docker buildx has: attestations, outputs, `--call`, `--progress`, `SOURCE_DATE_EPOCH`. */
import { expect, test } from "bun:test";
import { build } from "../../src/cli/builds/build.ts";
import { readBuildRequest } from "../../src/cli/builds/options/build-parsers.ts";
import { parseArguments } from "../../src/cli/command-line/arguments.ts";
import { argumentsOf } from "../../src/cli/command-line/help.ts";
import { readAttestationOptions } from "../../src/cli/export/attestation-options.ts";
import { readBuildOutputs } from "../../src/cli/export/build-outputs.ts";
import { epochOf, sourceDateEpoch } from "../../src/cli/export/times.ts";
import type { Runtime } from "../../src/cli/process/runtime.ts";
import { systemClock } from "../../src/clock.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const requestOf = (line: string) => {
  const words = line.split(" ").filter((word) => word !== "");
  const values = parseArguments(words, argumentsOf(build.definition), "bough build");
  return readBuildRequest(values, { environment: {} });
};
const max = { hasArguments: true, builderId: undefined, isInlineOnly: false };
const min = { hasArguments: false, builderId: undefined, isInlineOnly: false };

test.each<[line: string, options: ReturnType<typeof readAttestationOptions>]>([
  ["", undefined],
  ["--provenance .", { provenance: max, sbom: undefined }],
  ["--provenance true .", { provenance: max, sbom: undefined }],
  ["--provenance=false --sbom=false", undefined],
  ["--provenance mode=min", { provenance: min, sbom: undefined }],
  [
    "--provenance=mode=max,builder-id=https://ci.example",
    { provenance: { ...max, builderId: "https://ci.example" }, sbom: undefined },
  ],
  ["--sbom --provenance=mode=min,version=v1", { provenance: min, sbom: { generator: undefined } }],
  [
    "--attest type=sbom --attest type=provenance,mode=min",
    { provenance: min, sbom: { generator: undefined } },
  ],
  [
    "--attest type=provenance --provenance=false --sbom",
    { provenance: undefined, sbom: { generator: undefined } },
  ],
  [
    "--sbom=generator=scanner:1,DEPTH=2",
    { provenance: undefined, sbom: { generator: { image: "scanner:1", variables: { DEPTH: "2" } } } },
  ],
  ["--attest type=sbom,generator=scanner:1,disabled=true", undefined],
  ["--attest type=provenance,disabled=true", undefined],
  [
    "--attest type=provenance,inline-only=true",
    { provenance: { ...max, isInlineOnly: true }, sbom: undefined },
  ],
])("build %s", (line, options) =>
  expect(readAttestationOptions(requestOf(line).options, { environment: {} })).toEqual(options),
);

test.each([
  ["--provenance=mode=most", 'mode must be min or max, not "most"'],
  ["--provenance=version=v0.2", "only version=v1"],
  ["--attest type=vex", "--attest takes type=provenance or type=sbom"],
  ["--attest type=sbom,generator=", "generator names no image"],
  ["--sbom=DEPTH=2", "unknown field DEPTH"],
  ["--provenance=yes", "takes true, false or KEY=VALUE"],
  ["--provenance=colour=red", "unknown field colour"],
])("build %s is refused", (line, message) => {
  expect(() => readAttestationOptions(requestOf(line).options, { environment: {} })).toThrow(message);
});

const inline = { hasArguments: false, builderId: undefined, isInlineOnly: true };
test.each([
  ["", {}, { provenance: inline, sbom: undefined }],
  ["--sbom=false", {}, { provenance: inline, sbom: undefined }],
  ["--sbom", {}, { provenance: inline, sbom: { generator: undefined } }],
  ["--provenance=mode=max", {}, { provenance: max, sbom: undefined }],
  ["--provenance=false", {}, undefined],
  ["--attest type=provenance,disabled=true", {}, undefined],
  ["", { BUILDX_NO_DEFAULT_ATTESTATIONS: "1" }, undefined],
  ["", { BUILDX_NO_DEFAULT_ATTESTATIONS: "false" }, { provenance: inline, sbom: undefined }],
  ["--provenance", { BUILDX_NO_DEFAULT_ATTESTATIONS: "true" }, { provenance: max, sbom: undefined }],
])("docker build %s with %j", (line, environment, options) =>
  expect(readAttestationOptions(requestOf(line).options, { isPlugin: true, environment })).toEqual(options),
);

test("a word in BUILDX_NO_DEFAULT_ATTESTATIONS that is no boolean is refused, as by buildx", () => {
  const runtime = { isPlugin: true, environment: { BUILDX_NO_DEFAULT_ATTESTATIONS: "yes" } };
  expect(() => readAttestationOptions(requestOf("").options, runtime)).toThrow(
    'invalid BUILDX_NO_DEFAULT_ATTESTATIONS: strconv.ParseBool: parsing "yes": invalid syntax',
  );
});

const runtime = {
  workingDirectory: "/",
  environment: {},
  stdout: { isTerminal: false },
} as unknown as Runtime;
const givenOf = (line: string) => ({ ...requestOf(line), runtime });
const outputOf = (text: string, tag = "app:1") =>
  readBuildOutputs(givenOf(`-o ${text} --tag ${tag}`), [tag])[0];

test("-o type=image keeps the image with the service, under further names", () => {
  expect(outputOf('type=image,"name=b:1,c",push=false,unpack=true')).toMatchObject({
    destinations: [],
    tags: ["b:1", "c:latest"],
    ignored: ["--output: unpack is ignored: images are always unpacked"],
  });
  expect(
    outputOf("type=image,name=HOST/app:1,push=true".replace("HOST", "localhost:5000"))?.destinations,
  ).toHaveLength(1);
});

test.each([
  [
    "type=oci,dest=x,compression-level=9,oci-mediatypes=true,force-compression=true",
    { recompresses: true, ignored: [expect.stringContaining("compression-level is ignored")] },
  ],
  ["type=oci,dest=x", { recompresses: false, ignored: [], tags: [], hasDockersTypes: false }],
  ["type=oci,dest=x,oci-mediatypes=FALSE", { hasDockersTypes: true }],
  // As docker has it: without a place, where it goes by default.
  ["type=docker,dest=", { destinations: [{ kind: "daemon", names: ["localhost:5000/app:1"] }] }],
  [
    "type=oci,dest=x,annotation.Key.a=b,annotation-index.c=d=e,annotation-manifest[linux/amd64].f=",
    { givenAnnotations: ["manifest:key.a=b", "index:c=d=e", "manifest[linux/amd64]:f="] },
  ],
])("-o %s", (text, fields) => expect(outputOf(text, "localhost:5000/app:1")).toMatchObject(fields));

test("in the place of docker's builder unknown fields are left out, with a word", () => {
  const given = givenOf("-o type=docker,push=true,colour=red");
  const [output] = readBuildOutputs({ ...given, runtime: { ...runtime, isPlugin: true } }, []);
  expect(output?.ignored).toEqual([
    "--output: push is ignored: it is not known here",
    "--output: colour is ignored: it is not known here",
  ]);
});

test.each([
  ["type=oci,dest=x,oci-mediatypes=nope", 'oci-mediatypes must be true or false, not "nope"'],
  ["type=registry,push-by-digest=true", "can't push tagged ref localhost:5000/app:1 by digest"],
  ["type=oci,dest=x,colour=red", "unknown field colour"],
  [",", "is not KEY=VALUE"],
])("-o %s is refused", (text, message) =>
  expect(() => outputOf(text, "localhost:5000/app:1")).toThrow(message),
);

test.each([
  ["type=image,name=localhost:5000/a,push=true", "app:1", "localhost:5000/a"],
  // What docker's manual has: the name is that of -t.
  ["type=image,push=true,name-canonical=true", "localhost:5000/b", "localhost:5000/b"],
  ["type=registry", "localhost:5000/c", "localhost:5000/c"],
])("-o %s,push-by-digest=true -t %s pushes to a repository, without a tag", (text, tag, reference) =>
  expect(outputOf(`${text},push-by-digest=true`, tag)).toMatchObject({
    destinations: [{ kind: "registry", reference, byDigest: true }],
    tags: [],
  }),
);

test.each([
  ["ARG SOURCE_DATE_EPOCH=1704067200\nFROM scratch", 1704067200],
  ["ARG SOURCE_DATE_EPOCH\nFROM scratch", undefined],
  ["FROM scratch\nARG SOURCE_DATE_EPOCH=1", undefined],
])("the Dockerfile %j has the epoch %p", (text, epoch) =>
  expect(epochOf(parseDockerfile(text, "Dockerfile"))).toBe(epoch),
);

test("SOURCE_DATE_EPOCH=context means no time for a directory, and is refused for an address", () => {
  const given = { ...runtime, environment: { SOURCE_DATE_EPOCH: "context" } };
  expect(sourceDateEpoch({ ...requestOf("."), runtime: given })).toBeUndefined();
  const request = requestOf("https://host.example/app.git");
  expect(() => sourceDateEpoch({ ...request, runtime: given })).toThrow(
    "SOURCE_DATE_EPOCH=context is not supported",
  );
});

// Of two arguments of one name, the comment, the line and the value that docker buildx shows.
const described = `ARG BASE=build UNSET
# build compiles it
# build is not read
FROM scratch AS build
# V  the version

ARG V=1
# X lost
#
# x of another name
RUN --mount=type=secret,id=tok,required=true --mount=type=ssh true
FROM scratch AS other
ARG UNUSED
FROM $BASE
ARG X V
ARG UNSET TARGETOS
`;

const inLine = (line: number) => ({ ranges: [{ start: { line }, end: { line } }] });

test.each([
  [
    "targets",
    "TARGET    DESCRIPTION\nbuild     compiles it\nother     \n(default) \n",
    {
      targets: [
        { name: "build", description: "compiles it", base: "scratch", location: inLine(4) },
        { name: "other", base: "scratch", location: inLine(12) },
        { default: true, base: "$BASE", location: inLine(14) },
      ],
    },
  ],
  [
    "outline",
    "BUILD ARG   VALUE   DESCRIPTION\nBASE        build   \nX                   \nV           2       \nUNSET               \n\nSECRET   REQUIRED\ntok      true\n\nSSH       REQUIRED\ndefault   \n\n",
    {
      args: [
        { name: "BASE", value: "build", location: inLine(1) },
        { name: "X", location: inLine(15) },
        { name: "V", value: "2", location: inLine(15) },
        { name: "UNSET", location: inLine(16) },
      ],
      secrets: [{ name: "tok", required: true, location: inLine(11) }],
      ssh: [{ name: "default", location: inLine(11) }],
    },
  ],
  [
    "outline --target build",
    "TARGET:      build\nDESCRIPTION: compiles it\n\nBUILD ARG   VALUE   DESCRIPTION\nV           2        the version\n\nSECRET   REQUIRED\ntok      true\n\nSSH       REQUIRED\ndefault   \n\n",
    {
      name: "build",
      description: "compiles it",
      args: [{ name: "V", description: " the version", value: "2", location: inLine(7) }],
      secrets: [{ name: "tok", required: true, location: inLine(11) }],
      ssh: [{ name: "default", location: inLine(11) }],
    },
  ],
  [
    "outline --target other",
    "TARGET: other\n\nBUILD ARG   VALUE   DESCRIPTION\nUNUSED              \n\n",
    { name: "other", args: [{ name: "UNUSED", location: inLine(13) }] },
  ],
])("build --call %s lists it and asks no service", async (call, stdout, json) => {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: described });
  const words = `--url http://127.0.0.1:1 --token t build --docker --build-arg V=2 --call ${call} .`;
  expect(await runBough(words.split(" "), { workingDirectory })).toEqual({ exitCode: 0, stdout, stderr: "" });
  const inJson = await runBough(words.replace(/(outline|targets)/, "$1,format=json").split(" "), {
    workingDirectory,
  });
  const sources = [Buffer.from(described).toString("base64")];
  expect(inJson.stdout).toBe(`${JSON.stringify({ ...json, sources }, null, 2)}\n`);
});

test("build --call check,format=json has Docker's rules in its words, also of stages that are not built", async () => {
  const workingDirectory = temporaryDirectory();
  const text = "FROM busybox as other\nWORKDIR rel\nFROM busybox AS final\nCOPY x /\n";
  writeFiles(workingDirectory, { Dockerfile: text, x: "x" });
  const words = (call: string) =>
    `--url http://127.0.0.1:1 --token t build --docker --call ${call} .`.split(" ");
  const { exitCode, stdout } = await runBough(words("check,format=json"), { workingDirectory });
  const sources = [
    { filename: "Dockerfile", data: Buffer.from(text).toString("base64"), language: "Dockerfile" },
  ];
  const pages = "https://docs.docker.com/go/dockerfile/rule";
  expect([exitCode, JSON.parse(stdout)]).toEqual([
    0,
    {
      warnings: [
        {
          ruleName: "FromAsCasing",
          description: "The 'as' keyword should match the case of the 'from' keyword",
          url: `${pages}/from-as-casing/`,
          detail: "'as' and 'FROM' keywords' casing do not match",
          location: inLine(1),
        },
        {
          ruleName: "WorkdirRelativePath",
          description:
            "Relative workdir without an absolute workdir declared within the build can have unexpected results if the base image changes",
          url: `${pages}/workdir-relative-path/`,
          detail: 'Relative workdir "rel" can have unexpected results if the base image changes',
          location: inLine(2),
        },
      ],
      sources,
    },
  ]);
  writeFiles(workingDirectory, { Dockerfile: "FROM scratch\nFOO bar\n" });
  const broken = JSON.parse((await runBough(words("lint,format=json"), { workingDirectory })).stdout);
  expect(broken).toMatchObject({
    warnings: null,
    buildError: {
      message: "dockerfile parse error on line 2: unknown instruction: FOO",
      location: inLine(2),
    },
  });
  const { exitCode: refused, stderr } = await runBough(words("check,formt=json"), { workingDirectory });
  expect([refused, stderr]).toEqual([2, expect.stringContaining('invalid field "formt=json"')]);
});

test.each([
  ["quiet", /^[0-9a-f-]{36}\n$/, /^$/],
  ["none", /^IMAGE/, /^$/],
  ["rawjson", /^IMAGE/, /^\{.*\}\n$/s],
])("build --progress %s", async (mode, stdout, stderr) => {
  const service = await startFakeService();
  service.state.addImage("base:1");
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN true\n" });
  const words = ["--url", service.url, "--token", "t0ken-t0ken", "build", "--progress", mode, "."];
  const ended = await runBough(words, {
    workingDirectory,
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  await service.close();
  expect(ended).toEqual({
    exitCode: 0,
    stdout: expect.stringMatching(stdout),
    stderr: expect.stringMatching(stderr),
  });
});

test("a RUN says a minute before its limit of 600 seconds that it is going to be stopped", async () => {
  const { promise: until, resolve: finish } = Promise.withResolvers<void>();
  const service = await startFakeService({ run: () => ({ until }) });
  service.state.addImage("base:1");
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN make\n" });
  const sleep: typeof systemClock.sleep = (milliseconds, signal) =>
    milliseconds === 540_000 ? Promise.resolve() : systemClock.sleep(milliseconds, signal);
  const ended = await runBough(["--url", service.url, "--token", "t0ken-t0ken", "build", "."], {
    workingDirectory,
    environment: { BOUGH_HOME: temporaryDirectory() },
    clock: { ...systemClock, sleep },
    onStderr: (text) => {
      if (
        text.includes(
          "the command is stopped in 60 seconds, at its limit of 600: --timeout SECONDS allows more",
        )
      )
        finish();
    },
  });
  await service.close();
  expect(ended.exitCode).toBe(0);
});

test("the time before a command starts, in which its layers are fetched, does not count for that", async () => {
  const { promise: until, resolve: finish } = Promise.withResolvers<void>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const service = await startFakeService({
    run: () => ({ chunks: [{ stream: "stdout", data: "making\n" }], until }),
  });
  service.state.addImage("base:1");
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN make\n" });
  let sleeps = 0;
  const sleep: typeof systemClock.sleep = (milliseconds, signal) => {
    const isWarning = milliseconds > 500_000 && milliseconds <= 540_000;
    if (isWarning && ++sleeps === 1) return started;
    // After the start it waits for the whole time once more.
    if (isWarning) finish();
    return systemClock.sleep(milliseconds, signal);
  };
  const ended = await runBough(["--url", service.url, "--token", "t0ken-t0ken", "build", "."], {
    workingDirectory,
    environment: { BOUGH_HOME: temporaryDirectory() },
    clock: { ...systemClock, sleep },
    onStderr: (text) => {
      if (text.includes("making")) start();
    },
  });
  await service.close();
  expect(ended).toMatchObject({ exitCode: 0, stderr: expect.not.stringContaining("is stopped in") });
});
