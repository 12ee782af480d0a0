/** Build contexts that are an archive or only a Dockerfile, by URL and on standard input. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { sha256Of } from "../../src/sha256.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type FetchingBuilds, startFetchingBuilds } from "../support/fetching-builds.ts";
import { writeFiles } from "../support/files.ts";
import { inChunks, tarOf } from "../support/tar-bytes.ts";

let builds: FetchingBuilds;
let home: FetchingBuilds["home"];
let build: FetchingBuilds["build"];
let kept: FetchingBuilds["kept"];

const dockerfile = "FROM base:1\nCOPY . /x\nRUN make\n";

beforeEach(async () => {
  builds = await startFetchingBuilds();
  ({ home, build, kept } = builds);
});
afterEach(() => builds.close());

const archive = tarOf([
  { name: "Dockerfile", content: "FROM base:1\nCOPY . /x\nRUN make\n" },
  { name: ".dockerignore", content: "*ockerfile\n.dockerignore\n" },
  { name: "d/one", content: "one\n", uid: 7, gid: 8, mode: 0o600 },
  { name: "two", content: "two\n" },
]);
const archiveFiles = { "/x/d/one": "one\n", "/x/two": "two\n" };

describe("an archive", () => {
  async function compressed(program: string): Promise<Uint8Array> {
    return new Response(Bun.spawn([program, "-c"], { stdin: archive, stdout: "pipe" }).stdout).bytes();
  }
  const bytes = (program: string) => (program === "" ? archive : compressed(program));

  test.each(["", "gzip", "xz", "bzip2"])("on standard input: %s", async (program) => {
    const stdin = await bytes(program);
    const { texts, modes, exitCode } = await build(["-"], { stdin });
    expect(texts).toEqual(archiveFiles);
    expect(modes).toEqual(["/x/d/one 0600", "/x/two 0644"]);
    expect(exitCode).toBe(0);
    expect((await build(["-"], { stdin })).stderr).toContain("1 of 1 layer cached");
  });

  test.each(["", "gzip"])("by its URL: %s", async (program) => {
    const body = await bytes(program);
    const source = Bun.serve({ port: 0, fetch: () => new Response(body) });
    builds.closeLater({ close: () => source.stop(true) });
    const { texts, stderr } = await build([`${source.url}context.tar`]);
    expect(texts).toEqual(archiveFiles);
    expect(stderr).toContain(`downloading ${source.url}context.tar\n`);
    expect((await build([`${source.url}context.tar`])).stderr).toContain("1 of 1 layer cached");
    expect(kept()).toHaveLength(1);
  });

  test("by a URL that responds with 404 is an error; 503 is tried again", async () => {
    let count = 0;
    const source = Bun.serve({
      port: 0,
      fetch: ({ url }) => new Response("", { status: url.endsWith("none") ? 404 : ++count && 503 }),
    });
    builds.closeLater({ close: () => source.stop(true) });
    const none = await build([`${source.url}none`]);
    expect(none.stderr).toContain(`the build context ${source.url}none: the server responded with 404`);
    expect(none.exitCode).toBe(1);
    const clock = createManualClock((milliseconds) => milliseconds < 50_000);
    const { stderr } = await build([`${source.url}ill`], { clock });
    expect(stderr).toContain("trying again in ");
    expect(count).toBeGreaterThan(1);
  });

  test.each([
    [
      "a link to another directory, and a file below it",
      [
        { name: "out", flag: "2", target: "/etc" },
        { name: "out/passwd", content: "x" },
      ],
    ],
    ["a name with ..", [{ name: "../../passwd", content: "x" }]],
    ["an absolute name", [{ name: "/etc/bough-test", content: "x" }]],
  ] as const)("is not unpacked outside of its directory: %s", async (_, entries) => {
    const stdin = tarOf([{ name: "Dockerfile", content: "FROM base:1\nCOPY . /x\nRUN make\n" }, ...entries]);
    const { texts } = await build(["-", "--docker"], { stdin });
    expect(Object.values(texts)).toContain("x");
    expect(existsSync("/etc/bough-test")).toBe(false);
    expect(existsSync(join(home, "passwd")) || existsSync(join(home, "contexts", "passwd"))).toBe(false);
  });

  test.each([
    [
      "dockerfile, if there is no Dockerfile",
      [{ name: "dockerfile", content: "FROM base:1\nRUN small\n" }],
      "small",
    ],
    [
      "Dockerfile rather than dockerfile",
      [
        { name: "dockerfile", content: "FROM base:1\nRUN small\n" },
        { name: "Dockerfile", content: "FROM base:1\nRUN large\n" },
      ],
      "large",
    ],
  ] as const)("its Dockerfile: %s", async (_, entries, command) => {
    expect((await build(["-"], { stdin: tarOf(entries) })).exitCode).toBe(0);
    writeFiles(
      builds.directory,
      Object.fromEntries(entries.map(({ name, content }) => [`local/${name}`, content])),
    );
    expect((await build(["local"])).exitCode).toBe(0);
    expect(builds.service.state.instances.map((instance) => instance.command)).toEqual([command, command]);
  });

  const pax = (key: string, value: string) => {
    const size = (length: number): number => `${length} ${key}=${value}\n`.length;
    const record = `${size(size(size(0)))} ${key}=${value}\n`;
    return tarOf([
      { name: "pax", flag: "x", content: record },
      { name: "link", flag: "2", target: "x" },
    ]);
  };
  test.each([
    ["empty", "", "standard input is empty", 2],
    [
      "compressed, but no archive",
      Bun.gzipSync(Buffer.from("hello")),
      "standard input is compressed, but not a tar",
      2,
    ],
    [
      "neither an archive nor a Dockerfile",
      new Uint8Array(1000),
      "standard input is neither a tar archive nor a Dockerfile",
      2,
    ],
    ["a web page", "<!DOCTYPE html>\n<html></html>", "standard input is a web page", 2],
    ["cut short", archive.subarray(0, 1500), "standard input is damaged: it ends too early", 1],
    ["cut short in a file", archive.subarray(0, 600), "standard input is damaged: it ends too early", 1],
    ["with a device", tarOf([{ name: "null", flag: "3" }]), "standard input contains a device: null", 1],
    [
      "with a name that is too long",
      pax("path", "n".repeat(256)),
      "contains an entry that can't be written: nnn",
      2,
    ],
    [
      "with a link that is too long",
      pax("linkpath", "n".repeat(5000)),
      "be written: link: the name is too long",
      2,
    ],
    [
      "with a link without a target",
      tarOf([{ name: "link", flag: "2" }]),
      "be written: link: no such file or directory",
      2,
    ],
    ["without a Dockerfile", tarOf([{ name: "a", content: "a" }]), "standard input has no such file", 2],
  ])("is refused: %s", async (_, stdin, message, code) => {
    const { exitCode, stderr } = await build(["-"], { stdin });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(code);
    expect(kept().filter((path) => path.includes("/."))).toEqual([]);
  });

  const tail = new Uint8Array(10_000);

  test.each([
    ["a padded archive", Buffer.concat([archive, tail])],
    ["a compressed archive with more bytes after its end", Buffer.concat([Bun.gzipSync(archive), tail])],
    ["a Dockerfile", "FROM base:1\nRUN make\n"],
  ])("has the digest of all bytes that were received: %s", async (_, given) => {
    const stdin = Buffer.from(given);
    const { stderr } = await build(["-"], { stdin: inChunks(stdin) });
    expect(stderr).toContain(`, sha256:${sha256Of(stdin)})\n`);
  });

  test("is an error if the input breaks off after the archive's end", async () => {
    async function* cut() {
      yield archive;
      for (let left = 3; left > 0; left--) yield tail;
      throw new Error("the pipe is broken");
    }
    const { exitCode, stderr } = await build(["-"], { stdin: cut() });
    expect(stderr).toContain("the pipe is broken");
    expect(exitCode).toBe(1);
  });

  async function* endless() {
    yield archive;
    for (;;) yield tail;
  }

  test.each([
    ["as received", "40", () => inChunks(archive)],
    ["with the bytes after its end", "100000", endless],
    [
      "unpacked",
      "100000",
      () => inChunks(Bun.gzipSync(tarOf([{ name: "a", content: "a".repeat(100_001) }]))),
    ],
  ])("is refused if it is larger than --max-add-size: %s", async (_, size, stdin) => {
    const { exitCode, stderr } = await build(["-", "--max-add-size", size], { stdin: stdin() });
    expect(stderr).toContain(`standard input: it is larger than ${size} bytes`);
    expect(exitCode).toBe(1);
    expect(kept()).toEqual([]);
  });

  test.each(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])(
    "and the Dockerfile can't both be standard input: %s",
    async (path) => {
      async function* unread(): AsyncGenerator<Uint8Array> {
        yield await Promise.reject(new Error("it was read"));
      }
      const { exitCode, stderr } = await build(["-", "--dockerfile", path], { stdin: unread() });
      expect(stderr).toContain("standard input can't be both the build context and the Dockerfile");
      expect(exitCode).toBe(2);
    },
  );

  test("is expected, but nothing is piped in", async () => {
    const { exitCode, stderr } = await build(["-"]);
    expect(stderr).toContain("nothing is piped in");
    expect(exitCode).toBe(2);
  });

  test.each([
    ["while it is received", archive.subarray(0, 1024), false],
    ["that also ends the writer at the start", new Uint8Array(), true],
    ["that also ends the writer in the middle", archive.subarray(0, 1024), true],
  ])("Ctrl-C %s", async (_, beginning, isEnded) => {
    const interruption = new AbortController();
    const interrupt = () => interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
    async function* stdin() {
      yield beginning;
      setTimeout(interrupt, 1);
      if (!isEnded) await new Promise(() => {});
    }
    const { exitCode } = await build(["-"], { stdin: stdin(), signal: interruption.signal });
    expect(exitCode).toBe(130);
    expect(kept()).toEqual([]);
  });

  /** Sends the beginning of an archive and then nothing; from the second request on, all of it. */
  function stallingServer(bytes: Uint8Array, sent: number): string {
    let requests = 0;
    const source = Bun.serve({
      port: 0,
      idleTimeout: 0,
      fetch: () =>
        requests++ > 0
          ? new Response(bytes)
          : new Response(
              new ReadableStream({
                start: (controller) => controller.enqueue(bytes.slice(0, sent)),
                pull: () => new Promise(() => {}),
              }),
            ),
    });
    builds.closeLater({ close: () => source.stop(true) });
    return source.url.href;
  }

  async function downloadBegins(): Promise<void> {
    while (kept().length === 0) await Bun.sleep(1);
  }

  describe.each([
    ["a few bytes", "", 100],
    ["a part of a file", "", 1700],
    ["a part of a compressed archive", "gzip", 200],
    ["a part of an archive that another program decompresses", "xz", 100],
  ])("from a server that stalls after %s", (_, program, sent) => {
    test("Ctrl-C ends the build", async () => {
      const url = stallingServer(await bytes(program), sent);
      const interruption = new AbortController();
      const ended = build([url], { signal: interruption.signal });
      await downloadBegins();
      await Bun.sleep(50);
      interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
      expect((await ended).exitCode).toBe(130);
      expect(kept()).toEqual([]);
    });

    test("the request is repeated after a minute", async () => {
      const url = stallingServer(await bytes(program), sent);
      const clock = createManualClock((milliseconds) => milliseconds < 20_000);
      let said = "";
      const ended = build([url], { clock, onStderr: (text) => (said += text) });
      await downloadBegins();
      while (!said.includes("trying again in ")) {
        await clock.advance(60_000);
        await Bun.sleep(1);
      }
      const { texts } = await ended;
      expect(said).toMatch(/the build context \S+: (no data|only \d+ bytes) received (for|in) 60 s; trying/);
      expect(texts).toEqual(archiveFiles);
    });
  });
});

describe("a single Dockerfile", () => {
  const alone = "FROM base:1\nRUN make\n";

  test("can be on standard input or at a URL, and has no files to copy", async () => {
    expect((await build(["-"], { stdin: alone })).exitCode).toBe(0);
    const source = Bun.serve({ port: 0, fetch: () => new Response(alone) });
    builds.closeLater({ close: () => source.stop(true) });
    expect((await build([`${source.url}Dockerfile`])).exitCode).toBe(0);
    const { exitCode, stderr } = await build(["-"], { stdin: dockerfile.replace(". /x", "foo /x") });
    expect(stderr).toContain("no such file or directory in the build context: foo");
    expect(stderr).toContain("The build context is empty");
    expect(exitCode).toBe(1);
  });

  test("excludes --dockerfile", async () => {
    const { exitCode, stderr } = await build(["-", "--dockerfile", "other"], { stdin: alone });
    expect(stderr).toContain("--dockerfile other cannot be used: standard input is a Dockerfile itself");
    expect(exitCode).toBe(2);
  });
});
