import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/engine.ts";

let engine: TestEngine;
let base: string;

beforeAll(async () => {
  engine = await TestEngine.open();
  base = await engine.importBase();
});

afterAll(() => engine.close());

describe("a command's end", () => {
  test.each([
    ["an ordinary end", { command: "true" }, 0, ""],
    ["its own exit code", { command: "echo no >&2; exit 3" }, 3, "no\n"],
    ["a shell's unknown command", { command: "nope" }, 127, "not found"],
    ["an unknown program", { command: "nope", shell: false }, 127, 'exec: "nope": executable file not found'],
    ["a missing path", { command: "/no/such", shell: false }, 127, "no such file or directory"],
    ["a file that is no program", { command: "/etc/passwd", shell: false }, 126, "permission denied"],
    ["a signal", { command: "sleep 9 & kill -TERM $!; wait $!" }, 143, ""],
  ])("%s", async (_name, request, exitCode, stderr) => {
    const finished = await engine.run(base, request.command, request);
    expect(finished.operation.status).toBe("SUCCESS");
    expect(finished.exitCode).toBe(exitCode);
    expect(finished.stderr).toContain(stderr);
  });
});

test("a staged file is in place, with its owner and mode, before the command starts", async () => {
  const { uuid } = await engine.upload("hello\n");
  const files = { "/opt/new dir/hello": { uuid, uid: 5, gid: 6, mode: "4755" } };
  const finished = await engine.run(
    base,
    "cat '/opt/new dir/hello'; stat -c '%a %u %g' /opt /opt/new\\ dir/*",
    { files },
  );
  expect(finished.stdout).toBe("hello\n755 0 0\n4755 5 6\n");
});

test("a result is an image to start from, and a command that changes nothing answers the one it had", async () => {
  const first = await engine.run(base, "echo one > /one");
  expect(first.image).not.toBe(base);
  const second = await engine.run(first.image ?? "", "cat /one");
  expect(second.stdout).toBe("one\n");
  expect(second.image).toBe(first.image);
});
