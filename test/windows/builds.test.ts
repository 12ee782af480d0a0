/** Builds by the Windows program. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFiles } from "../support/files.ts";
import { startWindowsBough, type WindowsBough } from "./windows-bough.ts";

let windows: WindowsBough;
beforeAll(async () => {
  windows = await startWindowsBough();
});
afterAll(() => windows.stop());

test("a second build is cached", async () => {
  writeFiles(windows.drive, {
    "app/Dockerfile": "FROM busybox:1\nCOPY a.txt /srv/\nRUN cat /srv/a.txt\n",
    "app/a.txt": "hello\n",
  });
  const first = await windows.bough(["build", "app", "--tag", "app:1", "--iidfile", "id"]);
  expect(first.stderr).toContain("hello\n");
  expect(first).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("app:1") });
  const second = await windows.bough(["build", "D:\\app", "--tag", "app:1"]);
  expect(second.stderr).not.toContain("spawned");
  expect(second.exitCode).toBe(0);
});
