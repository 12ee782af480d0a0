/** `bough serve --listen`: the addresses, the options of Bun's server, and the warnings if others can connect. */
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { chmodSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describeExposure, listen, parseListenAddress } from "../../src/cli/engine/serve.ts";
import { temporaryDirectory } from "../support/bough.ts";

test.each([
  ["127.0.0.1:0", { kind: "tcp", hostname: "127.0.0.1", port: 0 }],
  ["localhost:8080", { kind: "tcp", hostname: "localhost", port: 8080 }],
  ["[::1]:80", { kind: "tcp", hostname: "::1", port: 80 }],
  ["unix:bough.sock", { kind: "unix", path: "/here/bough.sock" }],
  ["unix:/run/bough.sock", { kind: "unix", path: "/run/bough.sock" }],
] as const)("--listen %s", (given, address) => expect(parseListenAddress(given, "/here")).toEqual(address));

test.each([
  "8080",
  ":8080",
  "localhost",
  "localhost:",
  "localhost:99999",
  "::1:80",
  "unix:",
  "http://localhost:80",
])("--listen %s is refused", (given) =>
  expect(() => parseListenAddress(given, "/")).toThrow("--listen takes HOST:PORT or unix:PATH"),
);

describe("listening", () => {
  const open: { stop(closeActive: boolean): unknown }[] = [];
  afterEach(() => {
    for (const server of open.splice(0)) server.stop(true);
  });
  const start = (text: string, handler = async () => new Response("")) => {
    const faults: unknown[] = [];
    const server = listen(parseListenAddress(text, "/"), handler, (error) => faults.push(error));
    open.push(server);
    return { server, faults };
  };

  test.each(["tcp", "unix"])("%s: there is no idle timeout and no development mode", (kind) => {
    const serve = spyOn(Bun, "serve");
    try {
      start(kind === "tcp" ? "127.0.0.1:0" : `unix:${join(temporaryDirectory(), "s")}`);
      expect(serve.mock.calls[0]?.[0]).toMatchObject({ idleTimeout: 0, development: false });
    } finally {
      serve.mockRestore();
    }
  });

  test("a port that another server uses is refused, and a path that exists", () => {
    const { server } = start("127.0.0.1:0");
    expect(() => start(`127.0.0.1:${server.port}`)).toThrow("another program is listening there");
    const path = join(temporaryDirectory(), "s");
    start(`unix:${path}`);
    expect(() => start(`unix:${path}`)).toThrow(`cannot listen on ${path}: the file exists already`);
  });

  test("an error of the handler is reported here, and not to the client", async () => {
    const { server, faults } = start("127.0.0.1:0", async () => {
      throw new Error("secret /path");
    });
    const response = await fetch(server.url);
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error: "internal server error", status: 500 });
    expect(faults.map(String)).toEqual(["Error: secret /path"]);
  });

  test("the error of an unusable address has the address and the reason", () => {
    expect(() => start("192.0.2.1:80")).toThrow("cannot listen on 192.0.2.1:80: this machine has no such");
    expect(() => start("unix:/nowhere/s")).toThrow("cannot listen on /nowhere/s: no such directory");
  });

  test("a Unix socket is for its owner only, and the process keeps its umask", () => {
    const directory = temporaryDirectory();
    const before = process.umask();
    start(`unix:${join(directory, "s")}`);
    expect(statSync(join(directory, "s")).mode & 0o777).toBe(0o600);
    expect(process.umask()).toBe(before);
  });
});

describe("clients that can connect", () => {
  test.each([
    "127.0.0.1:0",
    "127.1.2.3:80",
    "localhost:80",
    "LOCALHOST:80",
    "[::1]:80",
    "[0:0:0:0:0:0:0:1]:80",
    "[::ffff:127.1.2.3]:80",
  ])("%s: only this machine, without a warning", (given) =>
    expect(describeExposure(parseListenAddress(given, "/"))).toBeUndefined(),
  );

  test.each([
    ["0.0.0.0:8080", "all addresses of this machine without TLS: anyone who can reach port 8080"],
    ["[::]:0", "all addresses of this machine without TLS: anyone who can reach it"],
    ["[0:0::0]:80", "all addresses of this machine"],
    ["192.0.2.7:80", "192.0.2.7 without TLS"],
    ["[2001:db8::1]:80", "2001:db8::1 without TLS"],
    ["[::ffff:7.240.0.1]:80", "::ffff:7.240.0.1 without TLS"],
    ["127.evil.example:80", "127.evil.example without TLS"],
    ["localhost.example:80", "localhost.example without TLS"],
  ])("%s: others, with a warning", (given, said) =>
    expect(describeExposure(parseListenAddress(given, "/"))).toContain(said),
  );

  test.each([
    [0o700, false],
    [0o755, false],
    [0o1777, false],
    [0o777, true],
    [0o770, true],
  ])("a Unix socket in a directory of mode %o", (mode, isExposed) => {
    const directory = join(temporaryDirectory(), "d");
    mkdirSync(directory);
    chmodSync(directory, mode);
    const link = `${directory}-link`;
    symlinkSync(directory, link);
    for (const path of [directory, link]) {
      const exposure = describeExposure({ kind: "unix", path: join(path, "s") });
      if (isExposed) expect(exposure).toContain("others can write to");
      else expect(exposure).toBeUndefined();
    }
  });
});
