/**
 * Golden cases of `bough build` against the scripted service over HTTP. `test/cases/build/<case>/` has
 * - `context/`, with its Dockerfile;
 * - `case.json`, if needed: the behaviour of the service and the command lines;
 * - `expected.txt`: the output and the requests to the service. `UPDATE_GOLDEN=1 ./scripts/test` writes it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import type { RecordedRequest } from "../fake-service/recording.ts";
import type { FakeTreeEntry, RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";

interface Case {
  /** Arguments after `bough --url ... build .`, for each build. `{source}` is the loopback server's address. */
  builds?: string[][];
  /** Outcomes of the RUNs, in order; further RUNs succeed. */
  runs?: RunOutcome[];
  service?: Pick<
    FakeServiceOptions,
    "events" | "sixCallsOnly" | "gzip" | "importAnswers" | "reportsHashes" | "extensions"
  >;
  /** Tags of images on the service; `base:1` by default. */
  images?: string[];
  /** Files of every image, for the inspect routes. */
  tree?: Record<string, FakeTreeEntry>;
  /** Files that a repository can't hold, such as links and empty directories. */
  files?: Record<string, FileSpec>;
  /** False if only the output is shown, without the requests. */
  requests?: boolean;
}

/** The service's address, which is part of chain hashes: the same in every run, whatever its port is. */
const address = "http://service.test";

const cases = join(import.meta.dir, "../cases/build");

/** The server of ADD's files. `/changing` has another validator and content for every request. */
let source: ReturnType<typeof Bun.serve>;
let sourceRequests: string[] = [];
beforeAll(() => {
  let count = 0;
  source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      sourceRequests.push(`${request.method} ${pathname}`);
      const headers = { ETag: pathname === "/changing" ? `"${++count}"` : '"1"' };
      if (pathname === "/missing") return new Response("no", { status: 404 });
      if (pathname === "/moved") return Response.redirect("/data.bin", 302);
      if (pathname === "/unvalidated") return new Response("plain");
      if (request.headers.get("if-none-match") === headers.ETag) return new Response(null, { status: 304 });
      return new Response(pathname === "/changing" ? `content ${count}` : "content", { headers });
    },
  });
});
afterAll(() => source.stop(true));

describe("bough build", () => {
  test.each(readdirSync(cases).sort())("%s", async (name) => {
    const directory = join(cases, name);
    const actual = await play(directory);
    expectGolden(join(directory, "expected.txt"), actual);
  });
});

async function play(directory: string): Promise<string> {
  const description = join(directory, "case.json");
  const given: Case = existsSync(description) ? JSON.parse(readFileSync(description, "utf8")) : {};
  const service = await startFakeService({ ...given.service, run: (_, count) => given.runs?.[count] });
  for (const tag of given.images ?? ["base:1"]) service.state.addImage(tag);
  for (const [path, entry] of Object.entries(given.tree ?? {})) service.state.tree.set(path, entry);
  const context = temporaryDirectory();
  cpSync(join(directory, "context"), context, { recursive: true });
  writeFiles(context, given.files ?? {});
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const shown: string[] = [];
  try {
    for (const words of given.builds ?? [[]]) {
      service.clearRequests();
      sourceRequests = [];
      const url = ["--url", address, "--token", "secret-token"];
      const here = words.map((word) => word.replaceAll("{source}", source.url.origin));
      const ended = await runBough([...url, "build", ".", ...here], {
        workingDirectory: context,
        environment,
        fetch: (input, init) =>
          fetch(typeof input === "string" ? input.replace(address, service.url) : input, init),
      });
      shown.push(
        `$ bough ${["build", ".", ...words].join(" ")}`,
        ended.stderr + ended.stdout,
        `exit code ${ended.exitCode}`,
        "",
        ...(given.requests === false ? [] : requestLines(service)),
        ...sourceRequests.map((request) => `source: ${request}`),
        "",
      );
    }
    return normalise(shown.join("\n"), service, context);
  } finally {
    await service.close();
  }
}

/** Requests in their order, then those that are concurrent with others, sorted. */
function requestLines({ requests }: FakeService): string[] {
  const lineOf = ({ method, path, query, json, bytes }: RecordedRequest) => {
    const search = new URLSearchParams(query).toString();
    const body = bytes === undefined ? json : `${bytes.size} bytes, sha256 ${bytes.sha256.slice(0, 8)}`;
    const shownBody =
      body === undefined ? "" : `\n  ${typeof body === "string" ? body : JSON.stringify(body)}`;
    return `${method} ${path}${search === "" ? "" : `?${decodeURIComponent(search)}`}${shownBody}`;
  };
  for (const { headers } of requests) expect(headers.authorization).toBe("Bearer secret-token");
  // Uploads, and the question what the service can do. The look-up of an image's other name may come too late to be seen.
  const isConcurrent = ({ path }: RecordedRequest) => path.startsWith("/v1/files") || path === "/v1/whoami";
  const isOther = ({ query }: RecordedRequest) => query.tag?.startsWith("docker.io/") === true;
  const concurrent = requests.filter(isConcurrent).map(lineOf).sort();
  const others = requests.filter((request) => !isConcurrent(request) && !isOther(request));
  return [...others.map(lineOf), ...concurrent];
}

function normalise(text: string, service: FakeService, context: string): string {
  /** UUIDs of images and operations, in the order in which they appear. */
  const numbers: Record<string, string[]> = {};
  let result = text;
  for (const { uuid, sha256 } of service.state.files.values()) {
    result = result.replaceAll(uuid, `file-${sha256.slice(0, 8)}`);
  }
  return result
    .replaceAll(address, "https://service")
    .replaceAll(source.url.origin, "http://source")
    .replaceAll(context, "CONTEXT")
    .replace(/build:[0-9a-f]{16}/g, "build:SESSION")
    .replace(/([a0])0000000-0000-4000-8000-\d+/g, (uuid, kind) => {
      const others = numbers[kind] ?? [];
      numbers[kind] = others.includes(uuid) ? others : [...others, uuid];
      return `${kind === "a" ? "image" : "operation"}-${numbers[kind].indexOf(uuid) + 1}`;
    })
    .replace(/layer:[0-9a-f]{12}/g, "layer:HASH")
    .replace(/("truncate_output_at":)\d+/g, '$1"LIMIT AND MARK"')
    .replace(/(uploaded.*, in) \d.*/g, "$1 TIME")
    .replace(/( done in| failed after) \d[^:]*: /g, "$1 TIME: ")
    .trimEnd()
    .concat("\n");
}
