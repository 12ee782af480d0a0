/** Responses of `bough serve` to clients that accept gzip, as they are sent. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { acceptsGzip } from "../../src/engine/http/gzip.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { lastingProcesses } from "../support/processes.ts";
import { type ServerProcess, startServer } from "../support/server.ts";

const environment = { BOUGH_HOME: "" };
const text = "a line of a large file\n".repeat(100_000);
let server: ServerProcess;
let base = "";

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory(), {
    prepare(root) {
      writeFileSync(join(root, "large"), text);
      writeFileSync(join(root, "small"), "small\n");
      // Incompressible bytes take a while to send.
      writeFileSync(
        join(root, "random"),
        crypto.getRandomValues(Buffer.alloc(65_536)).toString("base64").repeat(400),
      );
    },
  });
  const words = ["--local", "-q", "images", "import", layout, "--tag", "busybox:1"];
  base = (await runBough(words, { workingDirectory: "/", environment })).stdout.trim();
  server = await startServer(environment);
}, 180_000);
afterAll(() => server.stop());

/** Gets a response without decompressing it. */
function get(path: string, encoding: string, init: RequestInit = {}) {
  return fetch(`${server.url}/v1/${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${server.token}`, "Accept-Encoding": encoding, ...init.headers },
    decompress: false,
  });
}

const inspect = (call: string, path: string) => `inspect/${base}/${call}?path=${encodeURIComponent(path)}`;
const unpack = async (response: Response) =>
  Buffer.from(Bun.gunzipSync(new Uint8Array(await response.arrayBuffer())));

describe("compresses for clients that accept it, with the same bytes:", () => {
  test.each<[string, () => string]>([
    ["JSON", () => inspect("list", "/bin")],
    ["text", () => `${inspect("list", "/bin")}&text=1`],
    ["a file", () => inspect("download", "/large")],
    ["an archive", () => inspect("archive", "/etc")],
  ])("%s", async (_, path) => {
    const packed = await get(path(), "gzip, deflate");
    expect(packed.headers.get("Content-Encoding")).toBe("gzip");
    expect(packed.headers.get("Vary")).toBe("Accept-Encoding");
    expect(packed.headers.get("Content-Length")).toBeNull();
    const plain = await get(path(), "identity");
    expect(plain.headers.get("Content-Encoding")).toBeNull();
    expect(plain.headers.get("Vary")).toBe("Accept-Encoding");
    const bytes = Buffer.from(await plain.bytes());
    expect((await unpack(packed)).equals(bytes)).toBe(true);
  });
});

describe("does not compress", () => {
  test.each<[string, () => string]>([
    ["a small file", () => inspect("download", "/small")],
    ["an error", () => "operations/nope"],
    ["a short response", () => "whoami"],
  ])("%s", async (_, path) => {
    const response = await get(path(), "gzip");
    expect(response.headers.get("Content-Encoding")).toBeNull();
    expect((await response.bytes()).length).toBe(Number(response.headers.get("Content-Length")));
  });

  test("a stream of events, which are sent one by one", async () => {
    const body = JSON.stringify({ image: base, shell: true, command: `echo ${"x".repeat(2000)}; sleep 100` });
    const started = await get("instances", "identity", { method: "POST", body });
    const { uuid } = (await started.json()) as { uuid: string };
    const response = await get(`operations/${uuid}/events?follow=1`, "gzip");
    expect(response.headers.get("Content-Encoding")).toBeNull();
    let seen = "";
    for await (const chunk of response.body ?? []) {
      seen += new TextDecoder().decode(chunk);
      if (seen.includes("event: stdout")) break;
    }
    await get(`operations/${uuid}`, "gzip", { method: "DELETE" });
  });
});

describe("HEAD has the headers of GET:", () => {
  test.each([
    ["gzip", "download", "/large", "gzip", null],
    ["identity", "download", "/large", null, String(text.length)],
    ["gzip", "download", "/small", null, "6"],
    ["identity", "archive", "/etc", null, null],
  ])("%s, %s of %s", async (encoding, call, path, packed, length) => {
    const head = await get(inspect(call, path), encoding, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(head.headers.get("Content-Encoding")).toBe(packed);
    expect(head.headers.get("Content-Length")).toBe(length);
  });
});

test("a client that disconnects leaves no process running", async () => {
  const response = await get(inspect("archive", "/"), "gzip");
  for await (const _ of response.body ?? []) break;
  expect(await lastingProcesses("--pax-option=delete=atime")).toEqual([]);
});

test("bough's client reads compressed responses", async () => {
  const bough = ["--url", server.url, "--token", server.token ?? "", "cat", `${base}:/large`];
  const { stdout } = await runBough(bough, { workingDirectory: "/", environment });
  expect(stdout === text).toBe(true);
});

test.each<[string, boolean]>([
  ["gzip", true],
  ["deflate, gzip;q=0.5", true],
  ["*", true],
  ["x-gzip", true],
  ["GZIP", true],
  ["", false],
  ["identity", false],
  ["gzip;q=0", false],
  ["gzip; q=0.0, *", false],
  ["*;q=0", false],
  ["gzipped", false],
])("Accept-Encoding: %p", (header, accepts) => {
  expect(acceptsGzip(header)).toBe(accepts);
});
