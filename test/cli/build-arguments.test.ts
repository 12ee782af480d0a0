/** The value of a build argument: from the option, the environment or the Dockerfile's default. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nARG NAME=default\nRUN use $NAME\n" });
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(() => service.close());

test.each([
  { given: ["NAME=given"], environment: { NAME: "around" }, used: "given" },
  { given: ["NAME"], environment: { NAME: "around" }, used: "around" },
  { given: ["NAME"], environment: { NAME: "" }, used: "" },
  { given: ["NAME"], environment: {}, used: "default" },
  { given: ["NAME="], environment: { NAME: "around" }, used: "" },
  { given: ["NAME=a=b"], environment: {}, used: "a=b" },
  { given: ["NAME=first", "NAME=second"], environment: {}, used: "second" },
])("--build-arg $given with the environment $environment: $used", async ({ given, environment, used }) => {
  const options = given.flatMap((text) => ["--build-arg", text]);
  const ended = await runBough(["--url", service.url, "--token", "t", "build", ".", ...options], {
    workingDirectory: context,
    environment: { BOUGH_HOME: join(context, "..", "state"), ...environment },
  });
  expect(ended.stderr).not.toContain("[WARN]");
  expect(service.state.instances.map(({ command, env }) => [command, env])).toEqual([
    [`use ${used}`, { NAME: used }],
  ]);
});
