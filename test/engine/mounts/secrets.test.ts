/** The bytes of a secret are never in the engine's directory, however the command with the secret ends. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { canForbidSwap } from "../../../src/engine/sandbox/root/namespace-mount.ts";
import { TestEngine } from "../../support/engine.ts";
import { runs } from "../../support/random.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";

const secret = `s3cret-${crypto.randomUUID()}`;
const value = Buffer.from(secret).toString("base64");
const sha256 = new Bun.CryptoHasher("sha256").update(secret).digest();
/** The secret and its possible encodings. */
const traces = [
  secret,
  value,
  // Among other bytes the first and last characters of base64 differ.
  value.slice(4, -4),
  Buffer.from(secret).toString("hex"),
  sha256.toString("hex"),
  sha256.toString("base64"),
];

const { engine, base } = await openSharedEngine();

/** Returns files and names below the engine's directory with a trace of the secret. */
async function findTraces(directory = engine.directory): Promise<string[]> {
  // grep is another process, because closing a database's file drops the locks that the own process has on it.
  const grep = ["grep", "--recursive", "--text", "--files-with-matches", "--no-messages", "--fixed-strings"];
  const found = Bun.spawn([...grep, ...traces.flatMap((trace) => ["-e", trace]), directory]);
  const files = (await new Response(found.stdout).text()).split("\n").filter((line) => line !== "");
  const names = readdirSync(directory, { recursive: true }).map(String);
  return [...files, ...names.filter((name) => traces.some((trace) => name.includes(trace)))];
}

const mounts = [
  { type: "secret", target: "/run/secrets/s", value, env: "NOT_SECRET_BY_NAME" },
  { type: "secret", target: "/other", value, isFile: false, env: "OTHER" },
  { type: "cache", target: "/c", id: "x", sharing: "shared" },
] as const;
const given = 'test "$(cat /run/secrets/s)$OTHER" = "$NOT_SECRET_BY_NAME$OTHER" && test -n "$OTHER"';

test.each([
  ["6.3.13", false, false],
  ["6.4", false, true],
  ["6.18.44-custom", false, true],
  ["10.0.1-1-amd64", false, true],
  ["6.12.0", true, false],
])("Linux %s, in a user namespace: %p: its memory can be kept from being swapped: %p", (...row) => {
  const [kernel, inUserNamespace, can] = row;
  expect(canForbidSwap(kernel, inUserNamespace)).toBe(can);
});

test("a secret is not swapped where Linux can forbid that", async () => {
  const { stdout } = await engine.run(base, "grep /run/secrets/s /proc/self/mountinfo", {
    mounts: [...mounts],
  });
  expect(stdout.includes(",noswap")).toBe(canForbidSwap(release(), process.getuid?.() !== 0));
});

test("the search finds a secret in a command line", async () => {
  const other = await TestEngine.open();
  try {
    await other.run(await other.importBase(), `echo ${secret}`);
    expect(await findTraces(other.directory)).not.toEqual([]);
  } finally {
    await other.close();
  }
});

describe.each([
  ["a successful command", `${given} && echo fine`, {}, "fine\n"],
  ["a failed command", `${given} && echo fine; exit 3`, {}, "fine\n"],
  ["a command killed at its timeout", `${given} && echo fine; sleep 60`, { timeout: 1 }, "fine\n"],
  ["a missing command", "/none", { shell: false }, ""],
  ["an invalid working directory", "true", { cwd: "/proc/self" }, ""],
])("%s", (_, command, more, stdout) => {
  test("leaves no trace of a secret on the disk, during and after it", async () => {
    const running = engine.run(base, command, { mounts: [...mounts], ...more });
    const seen = new Set<string>();
    let hasEnded = false;
    const ended = running.finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      for (const name of await findTraces().catch(() => [])) seen.add(name);
    }
    expect((await ended).stdout).toBe(stdout);
    expect([...seen]).toEqual([]);
    expect(await findTraces()).toEqual([]);
    expect(JSON.stringify(await engine.events((await ended).operation.uuid))).not.toContain(secret);
  });
});

test("commands of an ordinary user leave no trace of a secret", async () => {
  const own = await openUserEngine();
  try {
    for (const command of [`${given} && touch /made`, "exit 3", "/none"]) {
      const { exitCode } = await own.run("tag:busybox:latest", command, { mounts: [...mounts] });
      expect(exitCode).toBe({ "exit 3": 3, "/none": 127 }[command] ?? 0);
      expect(await findTraces(own.directory)).toEqual([]);
    }
  } finally {
    await own.close();
  }
});

test("another process does not get a secret's variable, nor does its record", async () => {
  const started = await engine.start({
    ...{ image: base, command: "read line", stdin: { value: "", encoding: "ascii", close: false } as never },
    mounts: [...mounts],
  });
  const exec = { command: "echo value: $NOT_SECRET_BY_NAME; tail -c 1 /run/secrets/s | wc -c", shell: true };
  await engine.json("POST", `/v1/operations/${started.uuid}/subprocesses`, exec);
  const follow = async (): Promise<string> => {
    const response = await engine.fetch("GET", `/v1/operations/${started.uuid}/events`);
    const text = await response.text();
    return text.includes("value:\\n") ? text : Bun.sleep(10).then(follow);
  };
  expect(await follow()).not.toContain(secret);
  await engine.closeInput(started);
  await engine.finish(started);
  expect(await findTraces()).toEqual([]);
});

/** `FAST_CHECK_TIMES` multiplies this number. */
const kills = runs(8);

test(
  `${kills} kills leave no trace of a secret, and no locked cache`,
  async () => {
    for (let kill = 0; kill < kills; kill++) {
      const child = Bun.spawn(
        ["bun", join(import.meta.dir, "building-child.ts"), engine.directory, base, secret],
        {
          stdout: "pipe",
        },
      );
      await child.stdout.getReader().read();
      await Bun.sleep((kill * 52) % 150);
      child.kill("SIGKILL");
      await child.exited;
      expect(await findTraces()).toEqual([]);
    }
    const { exitCode } = await engine.run(base, "true", { mounts: [{ ...mounts[2], sharing: "locked" }] });
    expect(exitCode).toBe(0);
    const next = await TestEngine.open({ directory: engine.directory });
    await next.recover();
    await next.engine.close();
    expect(await findTraces()).toEqual([]);
    expect(readdirSync(join(engine.directory, "operations"))).toEqual([]);
  },
  60_000 + kills * 1000,
);
