/** What a command does and how it ends is the same whichever runtime starts it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeLayout } from "../../src/engine/layout.ts";
import { findCrun, groupProblem } from "../../src/engine/sandbox/runtime/choice.ts";
import { recallTrial } from "../../src/engine/sandbox/runtime/remembered-trial.ts";
import { openSealedCopy } from "../../src/engine/sandbox/runtime/sealed-copy.ts";
import { tinyProgram, unexpected } from "../../src/engine/sandbox/runtime/tiny-program.ts";
import { currentProcess } from "../../src/process-identity.ts";
import type { InstanceRequest } from "../../src/service/wire/instance.ts";
import type { InstanceResult } from "../../src/service/wire/operation.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { decode, openInput, TestEngine } from "../support/engine.ts";
import { runUntilExpired } from "../support/expired-command.ts";
import { usableRuntimes } from "../support/runtimes.ts";

const path = process.env.PATH;

describe.each(usableRuntimes())("by %s", (runtime) => {
  const environment = { PATH: path, BOUGH_RUNTIME: runtime };
  let engine: TestEngine;
  let base: string;
  beforeAll(async () => {
    engine = await TestEngine.open({ environment });
    base = await engine.importConfigured({
      prepare(root) {
        mkdirSync(join(root, "odd"));
        for (const [name, content] of [
          ["unknown", "no program\n"],
          ["interpreted", "#!/no/such\n"],
          ["data", "data\n"],
        ] as const)
          writeFileSync(join(root, "odd", name), content);
        for (const name of ["unknown", "interpreted"]) chmodSync(join(root, "odd", name), 0o755);
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
    ["/odd", 126, 'exec: "/odd": permission denied\n'],
    ["odd", 127, 'exec: "odd": executable file not found in $PATH\n'],
    ["/odd/unknown", 1, "exec /odd/unknown: exec format error\n"],
    ["/odd/interpreted", 1, "exec /odd/interpreted: no such file or directory\n"],
  ];
  test.each(starts)("%s can't be started, and says why", async (command, exitCode, stderr) => {
    const finished = await engine.run(base, command, { shell: false });
    expect(finished).toMatchObject({ exitCode, stderr, stdout: "" });
  });

  test.each(starts)("nor beside another command: %s", async (command, exitCode, stderr) => {
    const instance = await engine.start({ image: base, command: "cat", stdin: openInput, disposable: true });
    const result = await beside(instance, { command });
    await engine.closeInput(instance);
    await engine.finish(instance);
    expect([result.state?.exit_code, decode(result.stderr)]).toEqual([exitCode, stderr]);
  });

  test.each<[string, string, Partial<InstanceRequest>, object]>([
    ["its output", "echo out; echo err >&2; exit 3", {}, { stdout: "out\n", stderr: "err\n", exitCode: 3 }],
    [
      "output by name",
      "echo out > /dev/stdout; echo err > /proc/self/fd/2",
      {},
      { stdout: "out\n", stderr: "err\n" },
    ],
    ["input by name", "cat < /dev/stdin", { stdin: { value: "in", encoding: "ascii" } }, { stdout: "in" }],
    ["as another user", "echo out > /dev/stdout; id -u", { uid: 1000 }, { stdout: "out\n1000\n" }],
    [
      "words like a runtime's own",
      'echo \'{"msg":"exec container process \' >&2',
      {},
      { stderr: '{"msg":"exec container process \n' },
    ],
    ["silence, then an error", "sleep 0.3; echo late >&2", {}, { stderr: "late\n" }],
    ["an end of the input", "cat; echo end", {}, { stdout: "end\n" }],
    ["what it leaves behind", "sleep 60 & echo end", {}, { stdout: "end\n", exitCode: 0 }],
  ])("a command has %s", async (_, command, request, expected) => {
    expect(await engine.run(base, command, request)).toMatchObject({ exitCode: 0, ...expected });
  });

  test.each<[string, string, InstanceRequest["resources_limits"] & object, string, number | undefined]>([
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
  ])("a limit of %s is kept, and told", async (_, command, resources_limits, hit, exitCode) => {
    const { operation, ...ended } = await engine.run(base, command, { resources_limits });
    expect(operation.metadata?.result?.limits_hit?.map(({ limit }) => limit)).toEqual([hit as never]);
    if (exitCode !== undefined) expect(ended.exitCode).toBe(exitCode);
    expect(ended.stderr).not.toContain("unshare");
  });

  test("a command may have exactly as many processes as it is given, whatever runs beside it", async () => {
    const command = "cat; for i in $(seq 9); do sleep 1 & done; echo all; wait";
    const instance = await engine.start({
      image: base,
      command,
      stdin: openInput,
      // The shell, nine that sleep, and two that are beside them.
      resources_limits: { max_processes: 12 },
    });
    const create = { command: "sleep", args: ["20"] };
    for (const _ of [1, 2]) await engine.json("POST", `/v1/operations/${instance.uuid}/subprocesses`, create);
    await engine.closeInput(instance);
    const { metadata } = await engine.finish(instance);
    expect(metadata?.result?.limits_hit ?? []).toEqual([]);
    expect(decode(metadata?.result?.stdout)).toBe("all\n");
  });

  test("a process beside the command has its limits, its score and its groups", async () => {
    const look =
      "cat /proc/self/cgroup /proc/self/oom_score_adj; grep -E '^(Cap|Seccomp:|NoNew)' /proc/self/status; id";
    const instance = await engine.start({
      image: base,
      command: `${look}; cat`,
      stdin: openInput,
      disposable: true,
    });
    const result = await beside(instance, { command: look, shell: true });
    await engine.closeInput(instance);
    const { metadata } = await engine.finish(instance);
    expect(decode(result.stdout)).toBe(decode(metadata?.result?.stdout));
    expect(decode(result.stdout)).toContain("\n500\n");
  });

  test("the event of the beginning is the first, and says so", async () => {
    const { operation } = await engine.run(base, "true");
    const [first] = await engine.events(operation.uuid);
    expect(first).toMatchObject({ type: "init", data: { runtime_path: runtime } });
  });

  test("a command whose time is over says nothing but its own words", async () => {
    const { metadata } = await runUntilExpired(
      engine,
      base,
      "trap '' TERM; echo mine >&2; sleep 60",
      environment,
    );
    const { state, stderr } = metadata?.result ?? {};
    expect([decode(stderr), state?.exit_code, state?.timed_out]).toEqual(["mine\n", 137, true]);
  });

  test("nothing is left of commands, however they end, once the engine is closed", async () => {
    const groups = () => readdirSync("/sys/fs/cgroup", { recursive: true }).map(String).sort();
    const before = groups();
    const closed = await TestEngine.open({ environment });
    const image = await closed.importBase();
    await Promise.all(["true", "exit 3", "sleep 60 &"].map((command) => closed.run(image, command)));
    await runUntilExpired(closed, image, "echo begun; sleep 60", environment);
    await closed.run(image, "true");
    await closed.engine.close();
    expect(readdirSync(join(closed.directory, "containers"))).toEqual([]);
    const left = groups().filter((group) => !before.includes(group));
    // Other processes of this machine make groups, too.
    expect(left.filter((group) => group.includes(currentProcess()))).toEqual([]);
    await rm(closed.directory, { recursive: true });
  });

  async function beside(instance: { uuid: string }, spec: object): Promise<InstanceResult> {
    const processes = `/v1/operations/${instance.uuid}/subprocesses`;
    const { spid } = await engine.json<{ spid: number }>("POST", processes, spec);
    for (;;) {
      const result = await engine.json<InstanceResult>("GET", `${processes}/${spid}`);
      if (result.state?.exit_code !== -1 || result.state.signal !== -1) return result;
      await Bun.sleep(5);
    }
  }
});

/** The files of the programs of all processes that come from this one. */
function programsBelow(pid: number): string[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return children.map(Number).flatMap((child) => {
    try {
      return [readlinkSync(`/proc/${child}/exe`), ...programsBelow(child)];
    } catch {
      return [];
    }
  });
}

test.each(usableRuntimes().filter((runtime) => runtime === "crun"))(
  "%s is run from memory, also beside a command: the machine's /tmp has no copy of it",
  async (runtime) => {
    const engine = await TestEngine.open({ environment: { PATH: path, BOUGH_RUNTIME: runtime } });
    const image = await engine.importBase();
    const instance = await engine.start({ image, command: "cat", stdin: openInput, disposable: true });
    const processes = `/v1/operations/${instance.uuid}/subprocesses`;
    await engine.json("POST", processes, { command: "cat", stdin: openInput });
    const copies = () => programsBelow(process.pid).filter((program) => program.startsWith("/memfd:crun"));
    while (copies().length < 2) await Bun.sleep(2);
    await engine.json("DELETE", `/v1/operations/${instance.uuid}`);
    await engine.finish(instance);
    await engine.close();
  },
);

test("a sealed copy is the program, and stays it", () => {
  const program = join(temporaryDirectory(), "program");
  writeFileSync(program, "#!/bin/sh\necho mine\n");
  const copy = openSealedCopy(program) ?? -1;
  const path = `/proc/${process.pid}/fd/${copy}`;
  expect(() => writeFileSync(copy, "other")).toThrow("EPERM");
  expect(() => writeFileSync(path, "other")).toThrow("EPERM");
  expect(Bun.spawnSync(["/bin/sh", "-c", `exec ${path}`]).stdout.toString()).toBe("mine\n");
  closeSync(copy);
  expect(openSealedCopy(join(program, "missing"))).toBeUndefined();
});

describe("crun is used where it was tried and has passed", () => {
  const trialOf = (engine: TestEngine) => join(engine.directory, "runtime.json");

  test("what fails is remembered, and runc runs the command", async () => {
    const programs = temporaryDirectory();
    const tried = join(programs, "tried");
    writeFileSync(join(programs, "crun"), `#!/bin/sh\necho >> ${tried}\necho broken >&2\nexit 1\n`, {
      mode: 0o755,
    });
    const environment = { PATH: `${programs}:${path}` };
    const first = await TestEngine.open({ environment });
    const base = await first.importBase();
    expect((await first.run(base, "echo out")).stdout).toBe("out\n");
    await first.engine.close();
    const times = existsSync(tried) ? readFileSync(tried, "utf8").length : 0;
    expect(times).toBe(usableRuntimes({ path: environment.PATH }).length - 1);
    const second = await TestEngine.open({ environment, directory: first.directory });
    expect((await second.run(base, "echo out")).stdout).toBe("out\n");
    expect(existsSync(tried) ? readFileSync(tried, "utf8").length : 0).toBe(times);
    await second.close();
  });

  test.each([
    ["crun", 500, "FAILED", /BOUGH_RUNTIME asks for crun, which cannot be used: /],
    ["docker", 500, "FAILED", /BOUGH_RUNTIME is runc or crun, not "docker"/],
  ])("BOUGH_RUNTIME=%s without one is a failed command", async (runtime, _, status, error) => {
    const programs = temporaryDirectory();
    writeFileSync(join(programs, "crun"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const engine = await TestEngine.open({
      environment: { PATH: `${programs}:${path}`, BOUGH_RUNTIME: runtime },
    });
    const { operation } = await engine.run(await engine.importBase(), "true");
    expect(operation.status).toBe(status as never);
    expect(operation.error).toMatch(error);
    await engine.close();
  });

  const unknownCall = { x64: 9999, arm64: 9999 };
  test.each([
    [
      "as they are to end",
      [
        { ...unknownCall, expects: 38 },
        { x64: 39, arm64: 172, expects: 0 },
      ],
      0,
    ],
    ["with no error in place of one", [{ x64: 39, arm64: 172, expects: 38 }], unexpected],
    ["with another error", [unknownCall, { ...unknownCall, expects: 1 }], unexpected + 1],
    ["with an error in place of none", [{ ...unknownCall, expects: 0 }], unexpected],
  ])("a trial's program tells of calls that end %s", (_, calls, exitCode) => {
    const program = join(temporaryDirectory(), "program");
    writeFileSync(program, tinyProgram(calls), { mode: 0o755 });
    expect(Bun.spawnSync([program]).exitCode).toBe(exitCode);
  });

  test.each<[string, unknown, number, object | undefined]>([
    ["one that has passed", { key: "k", at: 0, result: { filter: "f" } }, 1e12, { filter: "f" }],
    ["one that has failed, for a day", { key: "k", at: 0, result: { problem: "p" } }, 1000, { problem: "p" }],
    ["not longer", { key: "k", at: 0, result: { problem: "p" } }, 1e12, undefined],
    ["none of another program or kernel", { key: "other", at: 0, result: { filter: "f" } }, 0, undefined],
    ["none that is damaged", { key: "k", at: 0, result: {} }, 0, undefined],
  ])("a trial's result holds: %s", (_, remembered, now, expected) => {
    const runtimeTrial = join(temporaryDirectory(), "runtime.json");
    writeFileSync(runtimeTrial, JSON.stringify(remembered), { mode: 0o600 });
    expect(recallTrial({ runtimeTrial }, "k", now)).toEqual(expected as never);
  });

  test("with other control groups it is tried anew", () => {
    const programs = temporaryDirectory();
    writeFileSync(join(programs, "crun"), "", { mode: 0o755 });
    const keys = (["one", "two"] as const).map((name) => {
      const groups = temporaryDirectory();
      writeFileSync(join(groups, "cgroup.procs"), "");
      const place = { directory: groups, mountPoint: groups };
      const hierarchy = {
        one: { version: 1, controllers: ["devices", "pids"], ...place } as const,
        two: { version: 2, controllers: [], ...place } as const,
      }[name];
      const find = () => findCrun(makeLayout(programs), { PATH: programs }, false, [hierarchy]);
      expect(find()).toEqual(find());
      return (find() as { key?: string }).key;
    });
    expect(keys).toEqual([expect.any(String), expect.any(String)]);
    expect(keys[0]).not.toBe(keys[1]);
  });

  test("control groups that a killed engine has made ahead are cleared away by the next", async () => {
    const engine = await TestEngine.open();
    await engine.engine.close();
    const left = join(engine.directory, "containers", "0-0.1.1.trial");
    // Where this engine would make none.
    const group = join(temporaryDirectory(), "0-0.1.1.trial");
    for (const made of [left, group]) mkdirSync(made);
    writeFileSync(join(left, "state.json"), JSON.stringify({ cgroup_paths: { "": group } }));
    const next = await TestEngine.open({ directory: engine.directory });
    for (const made of [left, group]) expect(existsSync(made)).toBe(false);
    expect(existsSync(trialOf(engine))).toBe(false);
    await next.close();
  });

  const writable = temporaryDirectory();
  writeFileSync(join(writable, "cgroup.procs"), "");
  const place = { directory: writable, mountPoint: writable };
  const one = { version: 1, controllers: ["devices"], ...place } as const;
  const two = { version: 2, controllers: [], ...place } as const;
  const elsewhere = { directory: "/proc/none", mountPoint: "/proc/none" };
  test.each([
    ["root, with groups of version 1", [one], { pids: { version: 1 } }, false, undefined],
    ["root, without a group of devices", [{ ...one, controllers: ["pids"] }], {}, false, /devices/],
    ["root, with one that is not its own", [{ ...one, ...elsewhere }], {}, false, /devices/],
    ["root, with groups of version 2", [two], { pids: { version: 2 } }, false, undefined],
    ["root, with those of somebody else", [{ ...two, ...elsewhere }], {}, false, /devices/],
    ["root, with some of each", [one, two], { pids: { version: 2 } }, false, /version 1 .* version 2/],
    ["an ordinary user, with none", [two], {}, true, undefined],
    ["an ordinary user, with groups of version 2", [two], { pids: { version: 2 } }, true, undefined],
  ] as const)("%s", (_, hierarchies, controllers, inUserNamespace, problem) => {
    const found = groupProblem(hierarchies, controllers, inUserNamespace);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(problem);
  });
});
