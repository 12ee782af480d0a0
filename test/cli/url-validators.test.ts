/** When `ADD <url>` fetches a content again. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(() => service.close());

const date = Date.parse("Tue, 14 Nov 2023 22:13:20 GMT");
const httpDate = (milliseconds: number) => new Date(milliseconds).toUTCString();

/** The second content, after "one", the age of both at the first request, and the contents that two builds fetch. */
test.each<[string, string[], { second: string; ageSeconds: number; etag?: string }, string[]]>([
  ["an old time", ["--docker"], { second: "two", ageSeconds: 60 }, ["one"]],
  ["a time within a minute, with --docker", ["--docker"], { second: "two", ageSeconds: 59 }, ["one", "two"]],
  ["a time within a minute", [], { second: "two", ageSeconds: 0 }, ["one"]],
  ["another length", [], { second: "three", ageSeconds: 3600 }, ["one", "three"]],
  ["another length, with --docker", ["--docker"], { second: "three", ageSeconds: 3600 }, ["one", "three"]],
  ["a tag, with --docker", ["--docker"], { second: "two", ageSeconds: 0, etag: '"1"' }, ["one"]],
])("a URL with %s", async (_, options, { second, ageSeconds, etag }, expected) => {
  let content = "one";
  const fetched: string[] = [];
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ method }) {
      if (method === "GET") fetched.push(content);
      const headers = {
        date: httpDate(date),
        "last-modified": httpDate(date - ageSeconds * 1000),
        ...(etag === undefined ? {} : { etag }),
      };
      return new Response(content, { headers });
    },
  });
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${server.url.href}f /f\nRUN make\n` });
  const state = temporaryDirectory();
  for (const next of ["one", second]) {
    content = next;
    const { exitCode } = await boughOn(service, ["build", ".", ...options], { context, state });
    expect(exitCode).toBe(0);
  }
  expect(fetched).toEqual(expected);
});
