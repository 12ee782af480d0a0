/** ADD of archives, local and from URLs, on a service that cannot unpack them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { tarOf } from "../support/tar-bytes.ts";

const archive = tarOf([
  { name: "d/one", content: "one\n", uid: 7, gid: 8, mode: 0o600 },
  { name: "two", content: "two\n" },
]);
let service: FakeService;
let source: ReturnType<typeof Bun.serve>;
let context: string;
let home: string;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
  source = Bun.serve({ port: 0, fetch: () => new Response(archive, { headers: { etag: '"1"' } }) });
  context = temporaryDirectory();
  home = temporaryDirectory();
});
afterEach(async () => {
  await source.stop(true);
  await service.close();
});

async function build(add: string, words: string[] = [], options: Partial<BoughOptions> = {}) {
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${add} /srv/\nRUN make\n` });
  const before = service.requests.length;
  const { exitCode, stderr } = await runBough(["build", ...words], {
    workingDirectory: context,
    ...options,
    environment: {
      ...{ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home },
      ...options.environment,
    },
  });
  const requests = service.requests.slice(before);
  return { exitCode, stderr, requests, files: filesOf(requests) };
}

/** Files of the last RUN as `path owner mode`. */
function filesOf(requests: FakeService["requests"]): string[] {
  const body = requests.findLast(({ method, path }) => method === "POST" && path === "/v1/instances")?.json;
  const files = (body as { files?: Record<string, { uid: number; gid: number; mode: string }> } | undefined)
    ?.files;
  return Object.entries(files ?? {}).map(([path, { uid, gid, mode }]) => `${path} ${uid}:${gid} ${mode}`);
}

const unpacked = ["/srv/d/one 7:8 0600", "/srv/two 0:0 0644"];

async function compressed(program: "bzip2" | "xz"): Promise<Uint8Array> {
  const child = Bun.spawn([program, "-c"], { stdin: archive, stdout: "pipe" });
  return new Response(child.stdout).bytes();
}

test.each([
  ["a.tar", [], ["/srv/a.tar 0:0 0644"]],
  ["--unpack a.tar", [], unpacked],
  ["a.tar", ["--docker"], unpacked],
  ["--unpack=false a.tar", ["--docker"], ["/srv/a.tar 0:0 0644"]],
  ["--unpack Dockerfile", [], ["/srv/Dockerfile 0:0 0644"]],
])("ADD %s with %j", async (add, options, expected) => {
  await Bun.write(`${context}/a.tar`, archive);
  expect((await build(add, options)).files).toEqual(expected);
});

test.each(["gzip", "zstd", "bzip2", "xz"] as const)(
  "an archive compressed with %s is unpacked, whatever its name",
  async (compression) => {
    const bytes =
      compression === "gzip"
        ? Bun.gzipSync(archive)
        : compression === "zstd"
          ? Bun.zstdCompressSync(archive)
          : await compressed(compression);
    await Bun.write(`${context}/named`, bytes);
    expect((await build("--unpack named")).files).toEqual(unpacked);
  },
);

test("an archive from a URL is unpacked with --unpack only", async () => {
  const url = new URL("/a.tar", source.url).href;
  expect((await build(url, ["--docker"])).files).toEqual(["/srv/a.tar 0:0 0600"]);
  expect((await build(`--unpack ${url}`)).files).toEqual(unpacked);
});

test("an archive that has changed when it is fetched again is refused, and nothing of it is remembered", async () => {
  let answers = 0;
  const forged = tarOf([{ name: "two", content: "forged\n" }]);
  const server = Bun.serve({ port: 0, fetch: () => new Response(answers++ === 0 ? archive : forged) });
  const { exitCode, stderr } = await build(`--unpack ${new URL("/a.tar", server.url).href}`);
  await server.stop(true);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("a.tar changed while it was being added");
  await Bun.write(`${context}/a.tar`, archive);
  expect((await build("--unpack a.tar")).files).toEqual(unpacked);
});

test.each([
  ["Ctrl-C", 130, /interrupted/],
  ["a minute", 1, /ADD \S+: (no data|only 100 bytes) received (for|in) 60 s\n/],
])("a server that stalls at the second request is given up after %s", async (what, code, message) => {
  let answers = 0;
  const silent = () =>
    new ReadableStream({
      start: (controller) => controller.enqueue(archive.slice(0, 100)),
      pull: () => new Promise(() => {}),
    });
  using server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch: () => new Response(answers++ === 0 ? archive : silent()),
  });
  const interruption = new AbortController();
  const clock = createManualClock();
  const word = `--unpack ${new URL("/a.tar", server.url).href}`;
  const isOver = build(word, [], { signal: interruption.signal, clock });
  // Two timeouts for heads of responses, and two for their bodies.
  while (clock.sleeps.filter((milliseconds) => milliseconds === 60_000).length < 4) await Bun.sleep(1);
  if (what === "Ctrl-C") interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
  else await clock.advance(60_000);
  const { exitCode, stderr } = await isOver;
  expect(stderr).toMatch(message);
  expect(exitCode).toBe(code);
});

test("the files of a known archive are not sent again", async () => {
  await Bun.write(`${context}/a.tar`, archive);
  await build("a.tar", ["--docker"]);
  const { exitCode, requests } = await build("a.tar", ["--docker", "--no-cache"]);
  expect(exitCode).toBe(0);
  expect(requests.filter(({ method, path }) => method === "POST" && path === "/v1/files")).toEqual([]);
});

test("a missing xz is an error that names it", async () => {
  await Bun.write(`${context}/a`, await compressed("xz"));
  const { exitCode, stderr } = await build("--unpack a", [], { environment: { PATH: "/nowhere" } });
  expect(exitCode).toBe(2);
  expect(stderr).toContain("is compressed with xz, but that program is not installed");
});

test("a damaged archive is refused with its line", async () => {
  await Bun.write(`${context}/a.tar`, archive.slice(0, 700));
  const { exitCode, stderr } = await build("--unpack a.tar");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("Dockerfile:2:");
  expect(stderr).toContain("a.tar is damaged: it ends too early");
});

test("ADD warns about the capabilities of files in an archive, which it does not keep", async () => {
  const record = "38 SCHILY.xattr.security.capability=x\n";
  const capable = (name: string) => [
    { name: "x", flag: "x", content: record },
    { name, content: name },
  ];
  await Bun.write(
    `${context}/a.tar`,
    tarOf([...capable("bin/ping"), ...capable("bin/newuidmap"), { name: "f" }]),
  );
  const words = "a.tar: capabilities of files are not kept, unlike in Docker (bin/ping and 1 more)";
  expect((await build("a.tar", ["--docker"])).stderr).toContain(words);
  // The second build remembers the entries.
  expect((await build("a.tar", ["--docker"])).stderr).toContain(words);
});

test("devices and pipes of an archive are left out with one warning by a service that can't make them", async () => {
  const entries = [{ name: "null", flag: "3" }, { name: "p", flag: "6" }, { name: "f" }];
  writeFileSync(join(context, "x.tar"), tarOf(entries));
  const { exitCode, stderr, files } = await build("x.tar", ["--docker"]);
  expect(stderr.replaceAll(`${context}/`, "").match(/^\[WARN\] .*x.tar.*$/gm)).toEqual([
    "[WARN] line 2: x.tar: devices and pipes are left out, unlike in Docker (null and 1 more): the service can't make them",
  ]);
  expect(files).toEqual(["/srv/f 0:0 0644"]);
  expect(exitCode).toBe(0);
});

test("an archive of a few kilobytes that unpacks to a terabyte is refused at once", async () => {
  Bun.spawnSync(["sh", "-c", "truncate -s 1T hole && tar -cSf x.tar hole && rm hole"], { cwd: context });
  const { exitCode, stderr } = await build("x.tar", ["--docker"]);
  expect(stderr).toContain("x.tar unpacks to more than 512 GiB");
  expect(exitCode).toBe(1);
});
