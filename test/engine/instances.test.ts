import { describe, expect, test } from "bun:test";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { decode } from "../support/engine.ts";
import { runUntilExpired } from "../support/expired-command.ts";
import { commandLines } from "../support/processes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

describe("a command's exit code and error output:", () => {
  test.each([
    ["success", { command: "true" }, 0, ""],
    ["the command's own exit code", { command: "echo no >&2; exit 3" }, 3, "no\n"],
    ["an unknown command in a shell", { command: "nope" }, 127, "not found"],
    ["an unknown program", { command: "nope", shell: false }, 127, 'exec: "nope": executable file not found'],
    ["a missing path", { command: "/no/such", shell: false }, 127, "no such file or directory"],
    ["a file that is not a program", { command: "/etc/passwd", shell: false }, 126, "permission denied"],
    ["a signal", { command: "sleep 9 & kill -TERM $!; wait $!" }, 143, ""],
    [
      "output that looks like runc's",
      { command: "printf 'runc run failed: ' >&2; exit 4" },
      4,
      "runc run failed: ",
    ],
  ])("%s", async (_name, request, exitCode, stderr) => {
    const finished = await engine.run(base, request.command, request);
    expect(finished.operation.status).toBe("SUCCESS");
    expect(finished.exitCode).toBe(exitCode);
    expect(finished.stderr).toContain(stderr);
  });
});

describe("a field of a request:", () => {
  test.each<[string, Partial<InstanceBody>, string, string]>([
    [
      "args reach the program unchanged",
      { shell: false, args: ["%s\n", "$HOME a  b"] },
      "printf",
      "$HOME a  b\n",
    ],
    [
      "env is added to the image's variables",
      { env: { A: "1 2" } },
      'echo "$A $PATH"',
      "1 2 /image/bin:/bin\n",
    ],
    ["env takes precedence over the image's variables", { env: { PATH: "/bin" } }, "echo $PATH", "/bin\n"],
    ["cwd is the working directory", { cwd: "/tmp" }, "pwd", "/tmp\n"],
    ["an empty cwd is the image's", { cwd: "" }, "pwd", "/srv/app\n"],
    [
      "a missing cwd is made with root as owner and mode 0755",
      { cwd: "/made/it self" },
      'stat -c "%a %u %g %n" . /made',
      "755 0 0 .\n755 0 0 /made\n",
    ],
    ["the default hostname is linuxkit", {}, "hostname", "linuxkit\n"],
    [
      "hostname is in /etc/hosts too",
      { hostname: "builder" },
      "hostname; grep -c builder /etc/hosts",
      "builder\n1\n",
    ],
    [
      "uid without gid has the user's groups of the image",
      { uid: 65534 },
      "id -u; id -g; id -G",
      "65534\n65534\n65534 100\n",
    ],
    ["uid with gid has no other groups", { uid: 65534, gid: 7 }, "id -u; id -g; id -G", "65534\n7\n7\n"],
    ["an unknown uid is in root's group", { uid: 4711 }, "id -u; id -G", "4711\n0\n"],
    ["HOME of an unknown uid is /", { uid: 4711 }, "echo $HOME", "/\n"],
    ["HOME is the user's", { uid: 65534 }, "echo $HOME", "/home\n"],
    ["stdin as text", { stdin: { value: "a\nb", encoding: "ascii" } }, "cat", "a\nb"],
    ["stdin as bytes", { stdin: { value: "AP8K", encoding: "base64" } }, "od -An -tx1", " 00 ff 0a\n"],
    ["stdin in lines of base64", { stdin: { value: "YWJj\nZA=\n=\n", encoding: "base64" } }, "cat", "abcd"],
    ["without stdin there is nothing to read", {}, "cat; echo read", "read\n"],
  ])("%s", async (_name, request, command, stdout) => {
    const image = await imageWithConfig();
    const finished = await engine.run(image, command, request);
    expect(finished.stderr).toBe("");
    expect(finished.stdout).toBe(stdout);
  });

  let configured: Promise<string> | undefined;
  function imageWithConfig(): Promise<string> {
    configured ??= engine.importConfigured({
      environment: ["PATH=/image/bin:/bin"],
      workingDirectory: "/srv/app",
    });
    return configured;
  }
});

test("a command need not read its input", async () => {
  const stdin = { value: "x".repeat(4_000_000), encoding: "ascii" };
  expect((await engine.run(base, "true", { stdin })).exitCode).toBe(0);
  expect((await engine.run(base, "wc -c", { stdin })).stdout).toBe("4000000\n");
});

test("an image is a UUID or tag:<name>", async () => {
  expect((await engine.run("tag:busybox:latest", "echo ok")).stdout).toBe("ok\n");
});

describe("the result", () => {
  test("is a new image, or the same one if the command changes nothing", async () => {
    const first = await engine.run(base, "echo one > /one");
    expect(first.image).not.toBe(base);
    expect(first.operation.result_image_uuid).toBe(first.image ?? "");
    const second = await engine.run(first.image ?? "", "cat /one");
    expect(second.stdout).toBe("one\n");
    expect(second.image).toBe(first.image);
  });

  test("has the root directory with mode 0755 and root's, whatever a command has made of it, as in Docker", async () => {
    expect((await engine.run(base, "chmod 711 /; stat -c %a /")).stdout).toBe("711\n");
    const changed = await engine.run(base, "chmod 700 /; chown 5:6 /; touch /x");
    expect((await engine.run(changed.image ?? "", "stat -c '%a %u:%g' /")).stdout).toBe("755 0:0\n");
  });

  test("has a failed command's changes too, but not a disposable one's", async () => {
    const failed = await engine.run(base, "touch /left; exit 1");
    expect((await engine.run(failed.image ?? "", "ls /left")).stdout).toBe("/left\n");
    const disposed = await engine.run(base, "touch /left", { disposable: true });
    expect(disposed.image).toBeUndefined();
  });

  test("has the environment with preserve_env", async () => {
    const kept = await engine.run(base, "true", { env: { KEPT: "yes" }, preserve_env: true });
    expect(kept.image).not.toBe(base);
    expect((await engine.run(kept.image ?? "", "echo $KEPT")).stdout).toBe("yes\n");
  });

  test("has output that is not ASCII in base64", async () => {
    const { operation } = await engine.run(base, "printf '\\377\\000h\\303\\251'");
    expect(operation.metadata?.result?.stdout).toEqual({
      value: "/wBow6k=",
      encoding: "base64",
      truncated: false,
    });
  });

  test("has each stream cut at truncate_output_at, with an event for it", async () => {
    const request = { image: base, command: "yes | head -c 100000; echo e >&2", truncate_output_at: 1000 };
    const { uuid } = await engine.start(request);
    const events = await engine.events(uuid);
    const streamed = events
      .filter(({ type }) => type === "stdout")
      .map(({ data }) => data as { value: string });
    expect(streamed.map(({ value }) => value).join("")).toHaveLength(1000);
    expect(events.find(({ type }) => type === "truncated")?.data).toEqual({
      stream: "stdout",
      bytes_emitted: 1000,
      bytes_dropped: 99_000,
    });
    const { metadata } = await engine.finish({ uuid });
    expect(metadata?.result?.stdout).toMatchObject({ truncated: true });
    expect(decode(metadata?.result?.stdout)).toHaveLength(1000);
    expect(metadata?.result?.stderr).toEqual({ value: "e\n", encoding: "ascii", truncated: false });
  });
});

describe("a timeout", () => {
  test("ends the command and its children, and keeps the output so far", async () => {
    const command = "setsid sh -c 'trap \"\" TERM; echo begun; sleep 31.4' & sleep 31.4";
    const { status, metadata } = await runUntilExpired(engine, base, command);
    expect(status).toBe("SUCCESS");
    expect(metadata?.result?.state).toMatchObject({ timed_out: true, exit_code: 137, signal: 9 });
    expect(decode(metadata?.result?.stdout)).toBe("begun\n");
    expect(commandLines().filter((line) => line.includes("sleep 31.4"))).toEqual([]);
  });
});

test("a file's mode is octal text or a number", async () => {
  const { uuid } = await engine.upload("content");
  const modes = { "/text": "4750", "/number": 0o4750, "/with-type": 0o100640, "/none": undefined };
  const files = Object.fromEntries(Object.entries(modes).map(([path, mode]) => [path, { uuid, mode }]));
  const body = { image: base, command: "stat -c %a /text /number /with-type /none", shell: true, files };
  const finished = await engine.finish(await engine.json("POST", "/v1/instances", body));
  expect(decode(finished.metadata?.result?.stdout)).toBe("4750\n4750\n640\n644\n");
});

test("a shell passes args to the command as separate words", async () => {
  const args = ["a b", "$HOME", "*", "'"];
  expect((await engine.run(base, "printf '[%s]'", { args })).stdout).toBe("[a b][$HOME][*][']");
});

test("the response and the record have the request's fields without secrets", async () => {
  const { uuid } = await engine.upload("content");
  const request = {
    image: base,
    command: "printenv TOKEN; echo s3cr3t-v4lue",
    args: ["s3cr3t-v4lue"],
    shell: true,
    env: { TOKEN: "s3cr3t-v4lue", PLAIN: "p" },
    uid: 1,
    gid: 2,
    files: { "/f": { uuid, uid: 3, gid: 4, mode: "0600" } },
    stdin: { value: "s3cr3t-v4lue", encoding: "ascii" },
    networking: { enabled: false },
    truncate_output_at: 0,
  };
  const said = {
    command: "printenv TOKEN; echo ***",
    args: ["***"],
    shell: true,
    image: base,
    env: { TOKEN: "***", PLAIN: "p" },
    cwd: "/root",
    uid: 1,
    gid: 2,
    hostname: "linuxkit",
    disposable: false,
    preserve_env: false,
    networking: { enabled: false },
    timeout: 600,
    truncate_output_at: 0,
    files: { "/f": { uuid, uid: 3, gid: 4, mode: "0600" } },
  };
  const answer = await engine.json<{ uuid: string }>("POST", "/v1/instances", request);
  expect(answer).toMatchObject(said);
  const operation = await engine.finish(answer);
  expect(operation.consumed_cpu).toBeGreaterThan(0);
  expect(operation.consumed_memory).toBeGreaterThan(1024 * 1024);
  expect(operation).toMatchObject({ image_uuid: base, image_size: null, metadata: said });
  const [summary] = await engine.json<OperationRecord[]>("GET", "/v1/operations?limit=1");
  expect(summary).toMatchObject({ uuid: answer.uuid, image_uuid: base, metadata: { env: said.env } });
  expect(summary?.metadata).not.toHaveProperty("files");
  const events = JSON.stringify(await engine.events(answer.uuid));
  expect(JSON.stringify([answer, operation, summary, events])).not.toContain("s3cr3t");
});

describe("an invalid request is refused:", () => {
  test.each<[string, Record<string, unknown>, number, string]>([
    ["no image", { image: undefined }, 400, "image is missing"],
    ["an unknown image", { image: "tag:nope:latest" }, 404, "there is no image tag:nope:latest"],
    ["no command", { command: undefined }, 400, "command is missing"],
    ["an empty command", { command: "" }, 400, "command must not be empty"],
    ["a relative cwd", { cwd: "tmp" }, 400, "cwd must be an absolute path"],
    ["a cwd with NUL", { cwd: "/\0" }, 400, "cwd must not contain a NUL character"],
    ["a variable with = in its name", { env: { "A=B": "c" } }, 400, 'env has a variable with the name "A=B"'],
    ["a variable that is not a string", { env: { A: 1 } }, 400, "env.A must be a string"],
    ["a timeout of 0", { timeout: 0 }, 400, "timeout must be a whole number of at least 1"],
    ["a timeout of eleven years", { timeout: 346_896_000 }, 400, "timeout must be at most 315360000 seconds"],
    ["a hostname with a slash", { hostname: "a/b" }, 400, "hostname must be"],
    ["an unknown encoding", { stdin: { value: "", encoding: "rot13" } }, 400, "stdin.encoding must be"],
    ["input that is not base64", { stdin: { value: "aGk!", encoding: "base64" } }, 400, "stdin.value is not"],
    [
      "many spaces, without taking minutes",
      { stdin: { value: `${" ".repeat(500_000)}!`, encoding: "base64" } },
      400,
      "stdin.value is not base64",
    ],
    ["a negative uid", { uid: -1 }, 400, "uid must be a whole number of at least 0"],
    [
      "a file at a relative path",
      { files: { a: {} } },
      400,
      'files["a"] must be the absolute path of a file',
    ],
    [
      "a file at a directory",
      { files: { "/a/": {} } },
      400,
      'files["/a/"] must be the absolute path of a file',
    ],
    ["an unknown field", { memory: 5 }, 400, "memory is not a known field"],
    [
      "an unknown field in a file",
      { files: { "/a": { owner: "me" } } },
      400,
      'files["/a"].owner is not a known field',
    ],
    [
      "an unknown field in the standard input",
      { stdin: { value: "", end: true } },
      400,
      "stdin.end is not a known field",
    ],
    [
      "an unknown field in the network",
      { networking: { ipv6: true } },
      400,
      "networking.ipv6 is not a known field",
    ],
    ["a mode that is not an octal text", { files: { "/a": { uuid: "UUID", mode: "0999" } } }, 400, '"0999"'],
    ["a negative mode", { files: { "/a": { uuid: "UUID", mode: -1 } } }, 400, "not -1"],
    ["a mode with a fraction", { files: { "/a": { uuid: "UUID", mode: 420.5 } } }, 400, "not 420.5"],
    ["an unknown file", { files: { "/a": { uuid: "nope" } } }, 404, "there is no file nope (for /a)"],
  ])("%s", async (_name, change, status, message) => {
    const { uuid } = await engine.upload("content");
    const body = JSON.stringify({ image: base, command: "true", shell: true, cwd: "/", ...change });
    const response = await engine.fetch("POST", "/v1/instances", body.replace("UUID", uuid));
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: expect.stringContaining(message), status });
  });

  test("a body that is not JSON", async () => {
    const response = await engine.fetch("POST", "/v1/instances", "{");
    expect(await response.json()).toEqual({ error: "the body is not JSON", status: 400 });
  });
});
