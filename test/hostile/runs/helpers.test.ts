/** Machines on which bough's helper programs never end: commands report that in bounded time, and leave no process behind. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "../../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { endOf } from "../../support/ended.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../../support/ordinary-user.ts";

describe.each([
  ["a chroot", "chroot", "unshare: unshare failed: Operation not permitted"],
  ["a limit of 0", "sysctl", "/proc/sys/user/max_user_namespaces is 0"],
] as const)("user namespaces forbidden by %s", (_, how, reason) => {
  let user: OrdinaryUser;
  beforeAll(() => {
    user = makeOrdinaryUser({ forbidsNamespaces: how });
    user.giveBough();
    const context = temporaryDirectory();
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nRUN true\n");
    user.give(context, "context");
  });
  afterAll(() => user.remove());

  test.each([
    ["doctor", ["doctor"]],
    ["build", ["build", "context"]],
    ["engine df", ["engine", "df"]],
  ])("%s names the reason to an ordinary user and ends", async (_, words) => {
    // `unshare --map-auto` of util-linux 2.38 leaves a child that waits for ever with bough's pipes open.
    const environment = [`PATH=${process.env.PATH}:${user.home}`, `HOME=${user.home}`];
    const command = ["env", "-i", `--chdir=${user.home}`, ...environment, "./bough", ...words];
    const child = Bun.spawn([...user.prefix, ...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const { exitCode, stdout, stderr } = await endOf(child);
    expect(stdout + stderr).toContain(
      `the embedded engine needs root, or a user namespace, which can't be created: ${reason}\n`,
    );
    expect(exitCode).toBe(1);
    expect(await lastingProcessesOf(user.home)).toEqual([]);
  });
});

describe("a program in PATH that never ends", () => {
  test.each([
    ["runc", "failed   engine's programs  runc did not end within 10 seconds, and was stopped"],
    ["skopeo", "failed   engine's programs  skopeo did not end within 10 seconds, and was stopped"],
    ["unshare", "failed   engine's programs  unshare did not end within 10 seconds, and was stopped"],
  ])("is stopped by doctor: %s", async (program, line) => {
    const directory = temporaryDirectory();
    const state = join(directory, "state");
    mkdirSync(state);
    const path = join(directory, program);
    writeFileSync(path, '#!/bin/sh\ntrap "" TERM INT HUP\nsleep 1000000 & sleep 1000000\n');
    chmodSync(path, 0o755);
    const clock = createManualClock();
    const ended = runBough(["--local", "doctor"], {
      workingDirectory: directory,
      environment: { PATH: `${directory}:${process.env.PATH}`, BOUGH_HOME: state },
      clock,
    });
    while (processesOf(directory).filter((words) => words === "sleep 1000000").length < 2) await Bun.sleep(5);
    await clock.advance(10_000);
    const { exitCode, stdout } = await ended;
    expect(stdout).toContain(`${line}\n`);
    expect(stdout).toContain("fix: ");
    expect(exitCode).toBe(1);
    expect(await lastingProcessesOf(directory)).toEqual([]);
    expect(readdirSync(state).filter((name) => name.startsWith("overlay-trial-"))).toEqual([]);
  });
});

/** Returns the processes of `processesOf` that are still there after two seconds: a killed process takes a moment to end. */
async function lastingProcessesOf(directory: string): Promise<string[]> {
  for (let attempt = 0; attempt < 200 && processesOf(directory).length > 0; attempt++) await Bun.sleep(10);
  return processesOf(directory);
}

/** Returns the command lines of processes that have `directory` in their environment. */
function processesOf(directory: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, "latin1").includes(directory)) return [];
        return readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ").trim();
      } catch {
        return [];
      }
    })
    .filter((line) => line !== "");
}
