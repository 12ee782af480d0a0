/** A command does the same and ends the same way with each runtime. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { InstanceResult } from "../../src/service/wire/operation.ts";
import { decode, openInput, TestEngine } from "../support/engine.ts";
import { runUntilExpired } from "../support/expired-command.ts";
import { usableRuntimes } from "../support/runtimes.ts";
import { programWithLoader } from "../support/tiny-program.ts";

const path = process.env.PATH;

describe.each(usableRuntimes())("by %s", (runtime) => {
  const environment = { PATH: path, BOUGH_RUNTIME: runtime };
  let engine: TestEngine;
  let base: string;
  beforeAll(async () => {
    engine = await TestEngine.open({ environment });
    base = await engine.importConfigured({
      prepare(root) {
        const path = (name: string) => join(root, "odd", name);
        mkdirSync(path(""));
        const programs: Record<string, string | Uint8Array> = {
          unknown: "no program\n",
          empty: "",
          "cut-off": "\x7fELF",
          interpreted: "#!/no/such\n",
          "interpreted-by-data": "#!/odd/data\n",
          "interpreted-by-unknown": "#! /odd/unknown -x\n",
          "interpreted-by-itself": "#!/odd/interpreted-by-itself\n",
          "without-loader": programWithLoader("/no/such/loader"),
        };
        for (const [name, content] of Object.entries(programs))
          writeFileSync(path(name), content, { mode: 0o755 });
        writeFileSync(path("data"), "data\n", { mode: 0o644 });
        symlinkSync("loop", path("loop"));
      },
    });
  });
  afterAll(() => engine.close());

  const starts: [words: string, exitCode: number, stderr: string][] = [
    ["nope", 127, 'exec: "nope": executable file not found in $PATH\n'],
    ["/no/such", 127, 'exec: "/no/such": stat /no/such: no such file or directory\n'],
    ["./no", 127, 'exec: "./no": stat ./no: no such file or directory\n'],
    ["/odd/data", 126, 'exec: "/odd/data": permission denied\n'],
    ["/odd/data/x", 126, 'exec: "/odd/data/x": stat /odd/data/x: not a directory\n'],
    ["/odd", 126, 'exec: "/odd": is a directory\n'],
    ["odd", 127, 'exec: "odd": executable file not found in $PATH\n'],
    ["/odd/unknown", 255, "exec /odd/unknown: exec format error\n"],
    ["/odd/empty", 255, "exec /odd/empty: exec format error\n"],
    ["/odd/cut-off", 255, "exec /odd/cut-off: exec format error\n"],
    ["/odd/interpreted", 255, "exec /odd/interpreted: no such file or directory\n"],
    ["/odd/interpreted-by-data", 255, "exec /odd/interpreted-by-data: permission denied\n"],
    ["/odd/interpreted-by-unknown", 255, "exec /odd/interpreted-by-unknown: exec format error\n"],
    [
      "/odd/interpreted-by-itself",
      255,
      "exec /odd/interpreted-by-itself: too many levels of symbolic links\n",
    ],
    ["/odd/without-loader", 255, "exec /odd/without-loader: no such file or directory\n"],
    ["/odd/loop", 126, 'exec: "/odd/loop": stat /odd/loop: too many levels of symbolic links\n'],
  ];
  test.each(starts)(
    "the command %s can't be started, with the reason on standard error",
    async (command, exitCode, stderr) => {
      const finished = await engine.run(base, command, { shell: false });
      expect(finished).toMatchObject({ exitCode, stderr, stdout: "" });
    },
  );

  test.each(starts)("another process %s can't be started either", async (command, exitCode, stderr) => {
    const instance = await engine.start({ image: base, command: "cat", stdin: openInput, disposable: true });
    const result = await runBeside(instance, { command });
    await engine.closeInput(instance);
    await engine.finish(instance);
    expect([result.state?.exit_code, decode(result.stderr)]).toEqual([exitCode, stderr]);
  });

  test.each<[string, string, Partial<InstanceBody>, object]>([
    [
      "its output and exit code",
      "echo out; echo err >&2; exit 3",
      {},
      { stdout: "out\n", stderr: "err\n", exitCode: 3 },
    ],
    [
      "output to /dev/stdout and /proc/self/fd/2",
      "echo out > /dev/stdout; echo err > /proc/self/fd/2",
      {},
      { stdout: "out\n", stderr: "err\n" },
    ],
    [
      "input from /dev/stdin",
      "cat < /dev/stdin",
      { stdin: { value: "in", encoding: "ascii" } },
      { stdout: "in" },
    ],
    ["its output as another user", "echo out > /dev/stdout; id -u", { uid: 1000 }, { stdout: "out\n1000\n" }],
    [
      "output that looks like a runtime's",
      'echo \'{"msg":"exec container process \' >&2',
      {},
      { stderr: '{"msg":"exec container process \n' },
    ],
    ["late error output", "sleep 0.3; echo late >&2", {}, { stderr: "late\n" }],
    ["an end of the input", "cat; echo end", {}, { stdout: "end\n" }],
    ["an end although a child still runs", "sleep 60 & echo end", {}, { stdout: "end\n", exitCode: 0 }],
  ])("a command has %s", async (_, command, request, expected) => {
    expect(await engine.run(base, command, request)).toMatchObject({ exitCode: 0, ...expected });
  });

  test.each<[string, string, InstanceBody["resources_limits"] & object, string, number | undefined]>([
    ["memory", "exec tail /dev/zero", { max_memory_bytes: 32 * 1024 ** 2 }, "max_memory_bytes", 137],
    [
      "memory of files",
      "cat /dev/zero > /dev/shm/x",
      { max_memory_bytes: 16 * 1024 ** 2 },
      "max_memory_bytes",
      undefined,
    ],
    [
      "processes",
      "for i in $(seq 40); do sleep 2 & done; wait",
      { max_processes: 24 },
      "max_processes",
      undefined,
    ],
  ])("a limit of %s is enforced and reported", async (_, command, resources_limits, hit, exitCode) => {
    const { operation, ...ended } = await engine.run(base, command, { resources_limits });
    expect(operation.metadata?.result?.limits_hit?.map(({ limit }) => limit)).toEqual([hit as never]);
    if (exitCode !== undefined) expect(ended.exitCode).toBe(exitCode);
    expect(ended.stderr).not.toContain("unshare");
  });

  test("limits of setrlimit", async () => {
    const ulimits = {
      nofile: { soft: 100, hard: 200 },
      core: { soft: 0, hard: 0 },
      cpu: { soft: -1, hard: -1 },
    };
    const look = "echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Hc) $(ulimit -Ht)";
    const { stdout } = await engine.run(base, look, { resources_limits: { ulimits } });
    expect(stdout).toBe("100 200 0 unlimited\n");
  });

  test.each(["fsize", "nofile"])("a low %s, with which crun would not start", async (name) => {
    const ulimits = { [name]: { soft: 12, hard: 100 } };
    const { stdout, operation } = await engine.run(base, "echo out", { resources_limits: { ulimits } });
    expect([stdout, operation.error]).toEqual(["out\n", null]);
  });

  test.each([
    [undefined, 64 * 1024],
    [128 * 1024 ** 2, 128 * 1024],
    // The kernel counts whole pages.
    [4097, 8],
  ])("/dev/shm of %p bytes", async (shm_bytes, kibibytes) => {
    const given = shm_bytes === undefined ? {} : { resources_limits: { shm_bytes } };
    const look = "df -k /dev/shm | awk 'END { print $2 }'; stat -c %a /dev/shm";
    expect((await engine.run(base, look, given)).stdout).toBe(`${kibibytes}\n1777\n`);
  });

  test("a command may have exactly max_processes processes, including others of its instance", async () => {
    const command = "cat; for i in $(seq 9); do sleep 1 & done; echo all; wait";
    const instance = await engine.start({
      image: base,
      command,
      stdin: openInput,
      // These are the shell, nine sleeps, and two other processes.
      resources_limits: { max_processes: 12 },
    });
    const create = { command: "sleep", args: ["20"] };
    for (const _ of [1, 2]) await engine.json("POST", `/v1/operations/${instance.uuid}/subprocesses`, create);
    await engine.closeInput(instance);
    const { metadata } = await engine.finish(instance);
    expect(metadata?.result?.limits_hit ?? []).toEqual([]);
    expect(decode(metadata?.result?.stdout)).toBe("all\n");
  });

  test("another process has the command's limits, OOM score and groups", async () => {
    const look =
      "cat /proc/self/cgroup /proc/self/oom_score_adj; grep -E '^(Cap|Seccomp:|NoNew)' /proc/self/status; id";
    const instance = await engine.start({
      image: base,
      command: `${look}; cat`,
      stdin: openInput,
      disposable: true,
    });
    const result = await runBeside(instance, { command: look, shell: true });
    await engine.closeInput(instance);
    const { metadata } = await engine.finish(instance);
    expect(decode(result.stdout)).toBe(decode(metadata?.result?.stdout));
    expect(decode(result.stdout)).toContain("\n500\n");
  });

  test("the environment of another process is not written to disk if the command has a secret", async () => {
    const instance = await engine.start({
      image: base,
      command: "cat",
      stdin: openInput,
      disposable: true,
      mounts: [{ type: "secret", target: "/s", value: "", env: "S" }],
    });
    // This makes the directory.
    await runBeside(instance, { command: "true" });
    const made = new Set<string | null>();
    const watcher = watch(join(engine.directory, "operations", instance.uuid), (_, name) => made.add(name));
    await runBeside(instance, { command: "true" });
    while (!made.has("process-3.pid")) await Bun.sleep(2);
    watcher.close();
    expect([...made]).not.toContain("process-3.json");
    await engine.closeInput(instance);
    await engine.finish(instance);
  });

  test("the first event is init, with the runtime", async () => {
    const { operation } = await engine.run(base, "true");
    const [first] = await engine.events(operation.uuid);
    expect(first).toMatchObject({ type: "init", data: { runtime_path: runtime } });
  });

  test("a command killed at its timeout has no output but its own", async () => {
    const { metadata } = await runUntilExpired(
      engine,
      base,
      "trap '' TERM; echo mine >&2; sleep 60",
      environment,
    );
    const { state, stderr } = metadata?.result ?? {};
    expect([decode(stderr), state?.exit_code, state?.timed_out]).toEqual(["mine\n", 137, true]);
  });

  test("commands leave nothing behind once the engine is closed, however they ended", async () => {
    const groups = () => readdirSync("/sys/fs/cgroup", { recursive: true }).map(String).sort();
    const before = groups();
    const closed = await TestEngine.open({ environment });
    const [owner = ""] = readdirSync(join(closed.directory, "locks"));
    const image = await closed.importBase();
    await Promise.all(["true", "exit 3", "sleep 60 &"].map((command) => closed.run(image, command)));
    await runUntilExpired(closed, image, "echo begun; sleep 60", environment);
    await closed.run(image, "true");
    await closed.engine.close();
    expect(readdirSync(join(closed.directory, "containers"))).toEqual([]);
    const left = groups().filter((group) => !before.includes(group));
    // Other processes of this machine make groups too.
    expect(left.filter((group) => group.includes(owner))).toEqual([]);
    await rm(closed.directory, { recursive: true });
  });

  async function runBeside(instance: { uuid: string }, spec: object): Promise<InstanceResult> {
    const processes = `/v1/operations/${instance.uuid}/subprocesses`;
    const { spid } = await engine.json<{ spid: number }>("POST", processes, spec);
    for (;;) {
      const result = await engine.json<InstanceResult>("GET", `${processes}/${spid}`);
      if (result.state?.exit_code !== -1 || result.state.signal !== -1) return result;
      await Bun.sleep(5);
    }
  }
});
