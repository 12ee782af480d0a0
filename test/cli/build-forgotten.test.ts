/** What happens when the service has lost what bough remembers: it is noticed, said, and made good in the same build. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
  writeFiles(context, {
    Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /\nRUN second\nRUN third\n",
    "a.txt": "a",
  });
});
afterEach(async () => {
  await service.close();
});

async function build(...options: string[]) {
  const before = service.state.instances.length;
  const ended = await runBough(["--url", service.url, "--token", "t0ken-t0ken", "build", ".", ...options], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
  return { ...ended, runs: service.state.instances.slice(before).map(({ command }) => command) };
}

const imageOf = (command: string) => {
  const operation = [...service.state.operations.values()].find(
    ({ request }) => request?.command === command,
  );
  return operation?.record.result?.image ?? "";
};

describe("an image is lost", () => {
  test.each([
    ["of the last layer, with a tag to set", "third", ["--tag", "app"], ["third"]],
    ["of the last layer, with none", "third", [], ["third"]],
    ["of a layer in between that nothing needs", "first", [], []],
  ])("%s", async (_, lost, options, runs) => {
    await build(...options);
    service.state.forgetImage(imageOf(lost));
    const again = await build(...options);
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(runs);
    expect(again.stderr.includes("the service no longer has image")).toBe(runs.length > 0);
  });

  test("all of them: everything is built again, in one build", async () => {
    await build();
    for (const command of ["first", "second", "third"]) service.state.forgetImage(imageOf(command));
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(["first", "second", "third"]);
    expect((await build()).runs).toEqual([]);
  });
});

test("an uploaded file is lost: it is sent again, and the RUN is run once", async () => {
  await build();
  const [sha256 = ""] = service.state.files.keys();
  service.state.forgetFile(sha256);
  const again = await build("--no-cache");
  expect(again.exitCode).toBe(0);
  expect(again.stderr).toContain("the service no longer has 1 uploaded file: sending again");
  expect(service.state.files.has(sha256)).toBe(true);
  expect(again.runs).toEqual(["first", "second", "third"]);
});
