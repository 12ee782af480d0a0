/** Results of failed steps on the engine. */
import { beforeAll, expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: temporaryDirectory() };
const workingDirectory = temporaryDirectory();
const bough = (...words: string[]) => runBough(["--local", ...words], { workingDirectory, environment });
const images = async () => (await bough("images", "--all", "-q")).stdout.trimEnd().split("\n");

async function fail(command: string): Promise<string> {
  writeFiles(workingDirectory, { Dockerfile: `FROM busybox:1\nRUN touch /before\nRUN ${command}\n` });
  const { exitCode, stderr } = await bough("build");
  expect(exitCode).toBe(1);
  return stderr;
}

async function lastResult(): Promise<string> {
  const operation = (await bough("ps", "--all", "-n", "1", "-q")).stdout.trim();
  return JSON.parse((await bough("show", operation, "-f", "json")).stdout).resultImage;
}

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough("images", "import", layout, "--tag", "busybox:1");
});

test("the newest failed result of a build is kept; one that a session uses stays", async () => {
  await fail("echo first > /log; exit 3");
  const first = await lastResult();
  expect((await bough("cat", `${first.slice(0, 8)}:/log`)).stdout).toBe("first\n");
  await fail("echo second > /log; exit 3");
  const second = await lastResult();
  expect(await images()).toEqual(expect.arrayContaining([second]));
  expect(await images()).not.toContain(first);

  await bough("-S", "look", "use", second);
  await fail("exit 4");
  expect(await images()).toContain(second);
  expect((await bough("-S", "look", "run", "--", "cat", "/log")).stdout).toBe("second\n");
});

test("on a full disk no failed result is kept, and the error says how to free space", async () => {
  const before = await images();
  // In two writes, because the message may arrive in parts.
  const stderr = await fail(
    "echo x > /big; printf 'dd: /big: No space' >&2; sleep 0.2; echo ' left on device' >&2; exit 1",
  );
  expect(stderr).toMatch(/no space left.* \d+ \w?B are free on the disk of /);
  expect(stderr).toContain("`bough engine prune` removes");
  expect(await images()).toEqual(before);
});

test("run reports a full disk, too, and says what happens to the written files", async () => {
  const command = "echo x > /big; echo 'sh: write error: No space left on device' >&2; exit 3";
  const thrownAway = await bough("run", "-D", "-s", "--use", "busybox:1", "--", command);
  expect(thrownAway.exitCode).toBe(3);
  expect(thrownAway.stderr).toMatch(/no space left. What .* was removed; \d+ \w?B are free on the disk of /);
  const kept = await bough("-S", "work", "run", "-s", "--use", "busybox:1", "--", command);
  expect(kept.stderr).toContain("after `bough --local -S work session rollback` it can be removed");
  expect(kept.stderr).toContain("`bough engine prune` removes");
  const fine = await bough("-S", "work", "run", "-s", "--", command.replace("exit 3", "exit 0"));
  expect(fine.stderr).not.toContain("no space");
});
