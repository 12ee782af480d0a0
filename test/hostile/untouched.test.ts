/** A build opens no ignored tree, and writes no fetched file to the disk. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(async () => {
  await service.close();
});

async function build(prefix: readonly string[], context: string, state: string) {
  const words = ["--url", service.url, "--token", "t0ken-t0ken", "build", context];
  const child = Bun.spawn([...prefix, compileBough(), ...words], {
    cwd: "/",
    env: { PATH: process.env.PATH, BOUGH_HOME: state },
    stdout: "ignore",
    stderr: "pipe",
  });
  const stderr = await new Response(child.stderr).text();
  return { exitCode: await child.exited, stderr };
}

test.each([
  ["by a rule for the directory", "secret\n"],
  ["by a rule for everything", "**\n!file\n"],
  ["by default", ""],
])("a tree that is ignored %s is not opened", async (_, rules) => {
  const context = temporaryDirectory();
  const ignored = rules === "" ? "node_modules" : "secret";
  writeFiles(context, {
    Dockerfile: "FROM base:1\nCOPY . /x\nRUN use it\n",
    ".dockerignore": `Dockerfile\n.dockerignore\n${rules}`,
    file: "x",
    [`${ignored}/deep/file`]: "x",
  });
  // Opening it would fail: the build has no capability to override its mode.
  chmodSync(join(context, ignored), 0o000);
  const overrides = "-dac_override,-dac_read_search";
  const prefix = ["setpriv", `--bounding-set=${overrides}`, `--inh-caps=${overrides}`];
  const { exitCode, stderr } = await build(prefix, context, temporaryDirectory());
  chmodSync(join(context, ignored), 0o755);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(Object.keys(service.state.instances[0]?.files ?? {})).toEqual(["/x/file"]);
});

test("ADD of a URL writes no file: it works if only the state directory is writable, and has no room for it", async () => {
  const size = 32 * 1024 * 1024;
  const source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(new Uint8Array(size), { headers: { etag: '"1"' } }),
  });
  const context = temporaryDirectory();
  const state = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${source.url}file /file\nRUN use it\n` });
  // Every mount is read-only, except a small one for the state, which has no room for the file.
  const script = [
    'state="$1"; shift',
    'mount -t tmpfs -o size=4m tmpfs "$state"',
    "for point in $(awk '{ print $2 }' /proc/self/mounts); do",
    '  case $point in "$state"|/proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$point" 2>/dev/null || true ;; esac',
    "done",
    'exec "$@"',
  ].join("\n");
  const prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", state];
  const { exitCode, stderr } = await build(prefix, context, state);
  await source.stop(true);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect([...service.state.files.values()].map((file) => file.size)).toEqual([size]);
});
