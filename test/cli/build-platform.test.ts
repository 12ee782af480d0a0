/** `bough build --platform` on services of one platform, and what no service builds. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { machineArchitecture } from "../../src/image/platform.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let workingDirectory: string;
let service: FakeService | undefined;
beforeEach(() => {
  workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN make\n" });
});
afterEach(() => service?.close());

async function build(options: string[], given: FakeServiceOptions = {}) {
  service = await startFakeService(given);
  service.state.addImage("base:1");
  const words = ["--url", service.url, "--token", "t0ken-t0ken", "build", ".", ...options];
  return runBough(words, { workingDirectory, environment: { BOUGH_HOME: temporaryDirectory() } });
}

test.each([
  ["linux/amd64", "linux/amd64"],
  ["linux/x86_64", "linux/amd64"],
  ["arm64", "linux/arm64"],
  ["Local", `linux/${machineArchitecture()}`],
])("%s is built on a service of %s", async (wanted, platform) => {
  const intercept: FakeServiceOptions["intercept"] = ({ url }) =>
    url.endsWith("/v1/whoami") ? Response.json({ platform }) : undefined;
  expect(await build(["--platform", wanted], { intercept })).toMatchObject({ exitCode: 0 });
});

test("another platform is refused before anything runs", async () => {
  const { exitCode, stderr } = await build(["--platform", "linux/arm64"]);
  expect(stderr).toContain(
    "[ERROR] --platform linux/arm64: the service runs only linux/amd64\nLeave --platform out, or build on a service of that platform.\n",
  );
  expect(exitCode).toBe(2);
  expect(service?.state.instances).toEqual([]);
});

test.each([
  ["windows/amd64", /the service runs only images for Linux/],
  ["all", /invalid platform "all"/],
  ["no such/platform", /invalid platform "no such\/platform"/],
])("--check refuses %s, too", async (platform, message) => {
  const words = ["--local", "build", "--check", "--platform", platform];
  const { exitCode, stdout, stderr } = await runBough(words, { workingDirectory });
  expect(stdout + stderr).toMatch(message);
  expect(exitCode).toBe(2);
});
