/** Files that are sent to the service before the RUN that needs them. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createEagerUploads } from "../../src/builder/staging/eager-uploads.ts";
import { createSmallContents } from "../../src/builder/staging/small-contents.ts";
import { systemClock } from "../../src/clock.ts";
import type { UploadCache } from "../../src/store/uploads.ts";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { RunScript } from "../fake-service/state.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
let run: RunScript;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  run = () => undefined;
  service = await startFakeService({ run: (request, count) => run(request, count) });
  service.state.addImage("base:1");
});
afterEach(() => service.close());

function build(dockerfile: string, clock = systemClock) {
  writeFiles(context, { Dockerfile: dockerfile });
  return boughOn(service, ["build", "."], { context, state, clock });
}

/** Resolves once a request for one more file than `count` has come. */
async function untilSent(count: number): Promise<void> {
  while (sent() <= count) await Bun.sleep(1);
}

function sent(): number {
  return service.requestsTo("POST /v1/files").length;
}

const twoRuns = "FROM base:1\nCOPY a /\nRUN one\nCOPY b c /\nRUN two\n";

test("the files of the next COPY are sent during a RUN, and reported after it", async () => {
  writeFiles(context, { a: "a", b: "b", c: "c" });
  // The build would hang if the files were sent only after the RUN.
  run = ({ command }) => (command === "one" ? { until: untilSent(2) } : undefined);
  const ended = await build(twoRuns);
  expect(ended.exitCode).toBe(0);
  expect(ended.stderr.match(/uploaded .*(?= sent)|(?<=op=\S+ )RUN (?:one|two)$/gm)).toEqual([
    "uploaded 1 file (1 B",
    "RUN one",
    "uploaded 2 files (2 B",
    "RUN two",
  ]);
  expect(ended.stderr).toContain("3 files uploaded (3 B)");
  expect(sent()).toBe(3);
});

test("files for an image without cached steps are sent as soon as they are hashed", async () => {
  writeFiles(context, { a: "a" });
  // The image's environment is requested after the COPY and before the RUN.
  run = ({ command }) => (command === "env" ? { until: untilSent(0), stdout: "PATH=/bin\n" } : undefined);
  const ended = await build("FROM base:1\nCOPY a /\nENV PATH=/opt:$PATH\nRUN one\n");
  expect(ended.exitCode).toBe(0);
  expect(sent()).toBe(1);
});

test("new files are sent while the service looks for the image, and a RUN takes two requests", async () => {
  writeFiles(context, { a: "a", b: "b" });
  const isLook = (path: string) => path === "/v1/images";
  // The build would hang if the files were sent only after the image is found.
  service.intercept = ({ url }) =>
    isLook(new URL(url).pathname) && sent() < 2 ? untilSent(1).then(() => undefined) : undefined;
  const ended = await build("FROM base:1\nCOPY a b /x/\nRUN one\nRUN two\n");
  expect(ended.exitCode).toBe(0);
  const calls = service.requests.map(
    ({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, "ID")}`,
  );
  const files = Array.from({ length: 2 }, () => "POST /v1/files");
  const step = ["POST /v1/instances", "GET /v1/operations/ID/events"];
  expect(calls.slice(0, 4).sort()).toEqual(["GET /v1/images", "GET /v1/images", ...files]);
  // Asked once a build, and beside the uploads.
  expect(calls.slice(4)).toEqual(["GET /v1/whoami", ...step, ...step]);
});

test("files that the service has are not sent again while it looks for an image", async () => {
  writeFiles(context, { a: "a" });
  expect((await build("FROM base:1\nCOPY a /x/\nRUN one\n")).exitCode).toBe(0);
  service.clearRequests();
  service.intercept = async ({ url }) => {
    if (new URL(url).pathname === "/v1/images") await Bun.sleep(300);
    return undefined;
  };
  expect((await build("FROM base:1\nCOPY a /y/\nRUN one\n")).exitCode).toBe(0);
  expect(sent()).toBe(0);
});

test("if steps are cached, only files that a RUN certainly needs are sent early", async () => {
  writeFiles(context, { a: "a", b: "b" });
  expect((await build("FROM base:1\n")).exitCode).toBe(0);
  const soon = { ...systemClock, sleep: () => new Promise<never>(() => {}) };
  const ended = await build("FROM base:1\nCOPY a b /x/\nADD c /\nRUN one\n", soon);
  expect(ended.stderr).toContain("no such file or directory in the build context: c");
  expect(sent()).toBe(0);
});

describe("a file of 64 MiB", () => {
  const size = 64 * 1024 * 1024;
  /** The clock stands still, so the service never counts as slow, however long this machine takes. */
  const now = Date.now();
  const still = { ...systemClock, now: () => now };
  const requests = () =>
    service.requests.filter(({ path }) => path.startsWith("/v1/files")).map(({ method }) => method);

  test.each([
    ["for an image without cached steps", "FROM base:1\nCOPY a large /\nRUN one\n"],
    ["named by a variable", "FROM base:1\nARG NAME=large\nCOPY a $NAME /\nRUN one\n"],
    ["needed after a RUN", "FROM base:1\nRUN one\nCOPY a large /\nRUN two\n"],
  ])("%s is sent before its hash is known, without a lookup", async (_, dockerfile) => {
    writeFiles(context, { a: "a", large: "x".repeat(size) });
    const ended = await build(dockerfile, still);
    expect(ended.exitCode).toBe(0);
    expect(requests()).toEqual(["POST", "POST"]);
    expect(ended.stderr).toContain("2 files uploaded (67 MB)");
    service.clearRequests();
    expect((await build(dockerfile, still)).stderr).toContain("0 files uploaded");
    expect(requests()).toEqual([]);
  });

  test("is hashed and looked up first if a cached step may have it", async () => {
    writeFiles(context, { large: "x".repeat(size) });
    expect((await build("FROM base:1\nCOPY large /\nRUN one\n", still)).exitCode).toBe(0);
    service.clearRequests();
    writeFiles(context, { large: "y".repeat(size) });
    expect((await build("FROM base:1\nCOPY large /\nRUN one\n", still)).exitCode).toBe(0);
    expect(requests()).toEqual(["GET", "POST"]);
  });

  test("is sent again if the service refused it while it was hashed", async () => {
    writeFiles(context, { large: "x".repeat(size) });
    service.intercept = ({ url }) => {
      if (!url.endsWith("/v1/files")) return undefined;
      service.intercept = undefined;
      return Response.json({ error: "not now" }, { status: 413 });
    };
    const ended = await build("FROM base:1\nCOPY large /\nRUN one\n", still);
    expect(ended.exitCode).toBe(0);
    expect(requests()).toEqual(["POST", "GET", "POST"]);
    expect(ended.stderr).toContain("1 file uploaded (67 MB)");
  });
});

test("a failed RUN does not wait for the files of the next one", async () => {
  writeFiles(context, { a: "a", b: "b", c: "c" });
  run = ({ command }) => (command === "one" ? { until: untilSent(1), exitCode: 3 } : undefined);
  service.intercept = (request) =>
    request.url.endsWith("/v1/files") && sent() > 1 ? new Promise<never>(() => {}) : undefined;
  const ended = await build(twoRuns);
  expect(ended.stderr).toContain("exit code 3");
  expect(ended.exitCode).toBe(1);
});

test.each([
  ["refused once is sent again", 1, 0],
  ["always refused is an error before the RUN that needs it", Number.POSITIVE_INFINITY, 1],
])("a file that is %s", async (_, times, exitCode) => {
  writeFiles(context, { a: "a", b: "b", c: "c" });
  let refused = 0;
  run = ({ command }) => (command === "one" ? { until: untilSent(1) } : undefined);
  service.intercept = (request) => {
    if (!request.url.endsWith("/v1/files") || sent() < 2 || refused >= times) return undefined;
    refused++;
    return Response.json({ error: "not now" }, { status: 413 });
  };
  const ended = await build(twoRuns);
  expect(ended.exitCode).toBe(exitCode);
  const ran = service.state.instances.map(({ command }) => command);
  expect(ran).toEqual(exitCode === 0 ? ["one", "two"] : ["one"]);
  if (exitCode === 0) expect(ended.stderr).toContain("3 files uploaded (3 B)");
  else expect(ended.stderr).toContain("not now");
});

test("stages that wait for files concurrently get separate totals", async () => {
  const sent = Promise.withResolvers<void>();
  const uploads = createEagerUploads({
    service: {
      async uploadFiles(files, _onProgress, options) {
        const hashes = [...files].map(({ sha256 }) => sha256);
        await sent.promise;
        for (const sha256 of hashes) options?.onFile?.(sha256, false);
        return new Map();
      },
      sendUnhashed: () => Promise.reject(new Error("nothing is that large")),
    },
    uploads: { get: () => undefined } as unknown as UploadCache,
    contents: createSmallContents(),
    signal: new AbortController().signal,
  });
  for (const sha256 of ["one", "two"]) uploads.offer({ absolutePath: `/${sha256}`, size: 3 }, sha256);
  uploads.markNeeded();
  const finish = (content: string) => uploads.finish({ begun: [content], rest: new Set() }, () => {});
  const totals = Promise.all([finish("one"), finish("two")]);
  sent.resolve();
  const each = { files: 1, sentBytes: 3, reused: 0 };
  expect(await totals).toEqual([each, each]);
});
