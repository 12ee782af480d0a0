/** `bough images import`: credentials that are seen by nobody, an interruption that reaches the service, progress. */
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startImportProgress } from "../../src/terminal/import-progress.ts";
import type { Log } from "../../src/terminal/log.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

const environmentOf = (url: string) => ({
  BOUGH_HOME: temporaryDirectory(),
  CONTREE_URL: url,
  CONTREE_TOKEN: "t0ken-t0ken",
});

test("a password goes from standard input into the request, and is seen nowhere else", async () => {
  const service = await startFakeService({ importError: () => "unauthorized" });
  const ended = await runBough(
    ["-L", "debug", "images", "import", "registry.example/app:1", "--username", "me", "--password-stdin"],
    { workingDirectory: "/", environment: environmentOf(service.url), stdin: "pass word\n" },
  );
  await service.close();
  expect(service.requestsTo("POST /v1/images/import")[0]?.json).toMatchObject({
    registry: { credentials: { username: "me", password: "pass word" } },
  });
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("unauthorized");
  expect(ended.stdout + ended.stderr).not.toContain("pass word");
});

test.each([
  ["oci:layout:1", "oci:HERE/layout:1"],
  ["oci:layout", "oci:HERE/layout"],
  ["oci:./layout:1", "oci:./layout:1"],
  // No such directory: the image of that name, with the tag.
  ["oci:1.0", "docker://docker.io/library/oci:1.0"],
])("%s is %s, relative to where one is", async (given, url) => {
  const service = await startFakeService();
  const workingDirectory = temporaryDirectory();
  mkdirSync(join(workingDirectory, "layout"));
  const environment = environmentOf(service.url);
  const { exitCode } = await runBough(["images", "import", given], { workingDirectory, environment });
  await service.close();
  expect(exitCode).toBe(0);
  expect(service.requestsTo("POST /v1/images/import")[0]?.json).toMatchObject({
    registry: { url: url.replace("HERE", workingDirectory) },
  });
});

test("an interruption cancels the import on the service", async () => {
  const service = await startFakeService();
  const operation = service.state.addOperation("image_import", {});
  const { uuid } = operation.record;
  service.intercept = ({ method, url }) =>
    method === "POST" && url.endsWith("/import")
      ? Response.json({ uuid }, { status: 201, headers: { location: `/v1/operations/${uuid}` } })
      : undefined;
  const interruption = new AbortController();
  const ended = runBough(["images", "import", "alpine:3"], {
    workingDirectory: "/",
    environment: environmentOf(service.url),
    signal: interruption.signal,
  });
  while (service.requestsTo(/events$/).length === 0) await Bun.sleep(2);
  interruption.abort(new Error("interrupted"));
  expect((await ended).exitCode).not.toBe(0);
  await service.close();
  expect(operation.record.status).toBe("CANCELLED");
});

function recordingLog(lines: string[]): Log {
  const add = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  return { debug: add("debug"), info: add("info"), warn: add("warn"), error: add("error") };
}

test("without a terminal a long import says now and then that it goes on", async () => {
  const clock = createManualClock();
  const lines: string[] = [];
  const log = recordingLog(lines);
  const progress = startImportProgress({ url: "docker://x/y:1", clock, log, terminal: undefined });
  await clock.advance(15_000);
  progress.message("Copying blob \u001b[2Jsha256:12\n");
  await clock.advance(15_000);
  progress.end("imported");
  await clock.advance(60_000);
  expect(lines).toEqual([
    "info importing docker://x/y:1",
    "info still importing docker://x/y:1  15 s",
    "debug Copying blob sha256:12",
    "info still importing docker://x/y:1  30 s  Copying blob sha256:12",
  ]);
});

test("on a terminal it is one line, drawn again and again, and cut to its width", async () => {
  const clock = createManualClock();
  const written: string[] = [];
  const terminal = { columns: 30, rows: 24, write: (text: string) => void written.push(text) };
  const progress = startImportProgress({ url: "docker://x/y:1", clock, log: recordingLog([]), terminal });
  await clock.advance(2_000);
  progress.message("Copying blob sha256:123456");
  expect(written.join("")).toContain("importing docker://x/y:1  2 …");
  expect(written.join("")).not.toContain("sha256");
  progress.end("imported");
  expect(written.at(-1)).toContain("[INFO] imported docker://x/y:1 (2 s)\n");
});

test.each([
  ["docker://127.0.0.1:1/app:1", "Check the reference, and that this machine can reach its registry."],
  ["docker-archive:/nowhere.tar", "Check the path, and what is there."],
])("%s fails on the embedded engine: nobody is sent to a service", async (reference, hint) => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const ended = await runBough(["images", "import", reference], { workingDirectory: "/", environment });
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain(`${hint}\n`);
});
