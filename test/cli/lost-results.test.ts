/** A command fails if the embedded engine could not write its result to the disk: the same command makes it again. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { dirname } from "node:path";
import { Agent } from "../support/agent.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { failFirst, SyncedEngine } from "../support/synced-engine.ts";

let engines: SyncedEngine;
let context: string;
beforeEach(async () => {
  engines = new SyncedEngine();
  context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM busybox:latest\nRUN echo made > /made\n" });
});
afterEach(() => engines.remove());

const prepare = (root: string) => writeFiles(root, { other: "" });

/** Returns variables for bough on an engine with a base, whose next sync fails. */
async function failingEnvironment(): Promise<Record<string, string>> {
  const { engine } = await engines.openWithBase();
  await engine.engine.close();
  return { BOUGH_HOME: dirname(engines.directory), PATH: engines.fakeSync(failFirst) };
}

test.each([
  ["build", () => ["build", ".", "--tag", "app:1"]],
  ["run", () => ["-S", "work", "run", "busybox:latest", "--", "touch", "/made"]],
  ["import", async () => ["images", "import", await makeBusyboxLayout(`${context}/other`, { prepare })]],
])("bough %s", async (_, words) => {
  const environment = await failingEnvironment();
  const line = ["--local", ...(await words())];
  const bough = () => runBough(line, { workingDirectory: context, environment });
  const first = await bough();
  expect(first.stderr).toMatch(
    /\[ERROR\] image \S+ is lost: it could not be written to the disk\nRun the same command again\.\n$/,
  );
  expect([first.exitCode, first.stdout]).toEqual([1, ""]);
  const again = await bough();
  expect([again.exitCode, again.stderr.includes("lost")]).toEqual([0, false]);
});

test("write_files of bough mcp", async () => {
  const agent = await Agent.start(["--local", "mcp"], context, await failingEnvironment());
  const write = () =>
    agent.call("write_files", { image: "busybox:latest", files: [{ path: "/made", content: "" }] });
  const first = await write();
  expect([first.isError, first.text]).toEqual([true, expect.stringContaining("is lost: it could not be")]);
  expect((await agent.resultOf("sessions")).sessions).toEqual([]);
  expect((await write()).isError).toBe(false);
  await agent.close();
});
