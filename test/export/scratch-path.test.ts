/** Temporary files and directories, and which of those left behind are removed by later processes. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readlinkSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { scratchPath } from "../../src/cli/export/scratch-path.ts";
import { currentProcess, identify } from "../../src/process-identity.ts";
import { temporaryDirectory } from "../support/bough.ts";

const table = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];
const id = crypto.randomUUID();
const otherBoot = identify(1).replace(/^[^.]+/, crypto.randomUUID());
const child = Bun.spawn(["sleep", "60"]);
const dead = identify(child.pid);
child.kill("SIGKILL");
await child.exited;

test.each([
  ["a dead process's directory", `bough-git-${table}_${dead}_${id}`, 0, false],
  ["a dead process's file", `bough-export-${table}_${dead}_${id}`, 0, false],
  ["this process's directory", `bough-git-${table}_${currentProcess()}_${id}`, 2, true],
  ["a living process's directory", `bough-push-${table}_${identify(process.ppid)}_${id}`, 2, true],
  ["a directory of another container", `bough-git-1_${dead}_${id}`, 0, true],
  ["an old directory of another container", `bough-git-1_${dead}_${id}`, 2, false],
  [
    "a directory from before a restart, or of another machine",
    `bough-base-${table}_${otherBoot}_${id}`,
    0,
    true,
  ],
  ["a dead process's context", `bough-context-${table}_${dead}_${id}`, 0, false],
  ["an old directory from before a restart", `bough-base-${table}_${otherBoot}_${id}`, 2, false],
  ["an old directory of an earlier version", `bough-git-${id}`, 2, false],
  ["a directory of another program", `bough-git-${table}`, 2, true],
  ["a directory of another kind", `bough-engine-${table}_${dead}_${id}`, 2, true],
])("%s", (_, name, days, stays) => {
  const directory = temporaryDirectory();
  const path = join(directory, name);
  if (name.startsWith("bough-export")) writeFileSync(path, "");
  else mkdirSync(join(path, "tree/below"), { recursive: true });
  const then = new Date(Date.now() - days * 24 * 60 * 60 * 1000 - 1000);
  utimesSync(path, then, then);
  const own = scratchPath("git", { TMPDIR: directory });
  expect(existsSync(path)).toBe(stays);
  expect(existsSync(own)).toBe(false);
  expect(basename(own)).toStartWith(`bough-git-${table}_${currentProcess()}_`);
});
