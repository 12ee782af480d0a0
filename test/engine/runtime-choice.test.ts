/** The choice of the runtime that starts commands. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { Networks } from "../../src/engine/network/networks.ts";
import { layerDirectory } from "../../src/engine/records/layers.ts";
import { findCrun, groupProblem, RuntimeChoice } from "../../src/engine/sandbox/runtime/choice.ts";
import { readTrial } from "../../src/engine/sandbox/runtime/trial-record.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { usableRuntimes } from "../support/runtimes.ts";

const path = process.env.PATH;

/** Puts a program named crun into a directory. It notes each start in `tried`, and fails. */
function writeCrun(programs: string, before = ""): { environment: { PATH: string }; times: () => number } {
  const tried = join(programs, "tried");
  const script = `#!/bin/sh\necho >> ${tried}\n${before}\necho broken >&2\nexit 1\n`;
  writeFileSync(join(programs, "crun"), script, { mode: 0o755 });
  return {
    environment: { PATH: `${programs}:${path}` },
    times: () => (existsSync(tried) ? readFileSync(tried, "utf8").length : 0),
  };
}

/** The bytes that this process has read. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}
const size = 32 * 1024 ** 2;

describe("crun is used only after a successful trial", () => {
  const trialOf = (engine: TestEngine) => join(engine.directory, "runtime.json");

  test("a failed trial is remembered, and runc runs the command", async () => {
    const programs = temporaryDirectory();
    const { environment, times } = writeCrun(programs);
    // The hole makes the file so large that reading it would be noticed.
    truncateSync(join(programs, "crun"), size);
    const first = await TestEngine.open({ environment });
    const base = await first.importBase();
    expect((await first.run(base, "echo out")).stdout).toBe("out\n");
    await first.engine.close();
    const before = times();
    expect(before).toBe(usableRuntimes({ path: environment.PATH }).length - 1);
    const readBefore = bytesRead();
    const second = await TestEngine.open({ environment, directory: first.directory });
    expect((await second.run(base, "echo out")).stdout).toBe("out\n");
    expect(times()).toBe(before);
    expect(bytesRead() - readBefore).toBeLessThan(size);
    await second.close();
  });

  test.each(usableRuntimes().filter((runtime) => runtime === "crun"))(
    "a command that waits for another command's trial, which is cancelled, tries %s again",
    async () => {
      const programs = temporaryDirectory();
      const go = join(programs, "go");
      const { environment, times } = writeCrun(programs, `until [ -e ${go} ]; do sleep 0.01; done`);
      const layout = makeLayout(temporaryDirectory());
      const networks = new Networks({ environment, clock: systemClock, warn() {} });
      const host = { layout, environment, clock: systemClock, inUserNamespace: false, networks };
      mkdirSync(layerDirectory(layout, 1));
      const choice = new RuntimeChoice();
      const [cancelled, waiting] = [new AbortController(), new AbortController()];
      const take = ({ signal }: AbortController) => choice.take(host, [1], { hasTerminal: false, signal });
      const first = take(cancelled);
      const second = take(waiting);
      while (times() === 0) await Bun.sleep(2);
      cancelled.abort();
      await expect(first).rejects.toThrow("aborted");
      writeFileSync(go, "");
      expect((await second).name).toBe("runc");
      expect(times()).toBe(2);
      await Promise.all([choice.close(), networks.close()]);
    },
  );

  test.each([
    ["crun", 500, "FAILED", /BOUGH_RUNTIME is crun, which cannot be used: /],
    ["docker", 500, "FAILED", /BOUGH_RUNTIME must be runc or crun, not "docker"/],
  ])(
    "BOUGH_RUNTIME=%s fails the operation if that runtime is not usable",
    async (runtime, _, status, error) => {
      const programs = temporaryDirectory();
      writeFileSync(join(programs, "crun"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
      const engine = await TestEngine.open({
        environment: { PATH: `${programs}:${path}`, BOUGH_RUNTIME: runtime },
      });
      const { operation } = await engine.run(await engine.importBase(), "true");
      expect(operation.status).toBe(status as never);
      expect(operation.error).toMatch(error);
      await engine.close();
    },
  );

  test.each<[string, unknown, number, object | undefined]>([
    ["of success is kept", { key: "k", at: 0, result: { filter: "f" } }, 1e12, { filter: "f" }],
    ["of failure is kept for a day", { key: "k", at: 0, result: { problem: "p" } }, 1000, { problem: "p" }],
    ["of failure is not kept for longer", { key: "k", at: 0, result: { problem: "p" } }, 1e12, undefined],
    [
      "of another program or kernel is not used",
      { key: "other", at: 0, result: { filter: "f" } },
      0,
      undefined,
    ],
    ["that is damaged is not used", { key: "k", at: 0, result: {} }, 0, undefined],
  ])("a trial's result %s", (_, remembered, now, expected) => {
    const runtimeTrial = join(temporaryDirectory(), "runtime.json");
    writeFileSync(runtimeTrial, JSON.stringify(remembered), { mode: 0o600 });
    expect(readTrial({ runtimeTrial }, "k", now)).toEqual(expected as never);
  });

  test("other control groups need another trial", () => {
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

  test("the next engine removes control groups of a killed engine's trial", async () => {
    // Such an engine gets no result of another one's trial.
    const environment = { PATH: process.env.PATH };
    const engine = await TestEngine.open({ environment });
    await engine.engine.close();
    const left = join(engine.directory, "containers", "0-0.1.1.trial");
    // This engine would not make groups there.
    const group = join(temporaryDirectory(), "0-0.1.1.trial");
    for (const made of [left, group]) mkdirSync(made);
    writeFileSync(join(left, "state.json"), JSON.stringify({ cgroup_paths: { "": group } }));
    const next = await TestEngine.open({ environment, directory: engine.directory });
    await next.recover();
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
    ["root with groups of version 1 can use crun", [one], { pids: { version: 1 } }, false, undefined],
    [
      "root without a group of devices cannot use crun",
      [{ ...one, controllers: ["pids"] }],
      {},
      false,
      /devices/,
    ],
    [
      "root with groups of version 1 that are not writable cannot use crun",
      [{ ...one, ...elsewhere }],
      {},
      false,
      /devices/,
    ],
    ["root with groups of version 2 can use crun", [two], { pids: { version: 2 } }, false, undefined],
    [
      "root with groups of version 2 that are not writable cannot use crun",
      [{ ...two, ...elsewhere }],
      {},
      false,
      /devices/,
    ],
    [
      "root with controllers in both versions cannot use crun",
      [one, two],
      { pids: { version: 2 } },
      false,
      /version 1 .* version 2/,
    ],
    ["an ordinary user without groups can use crun", [two], {}, true, undefined],
    [
      "an ordinary user with groups of version 2 can use crun",
      [two],
      { pids: { version: 2 } },
      true,
      undefined,
    ],
  ] as const)("%s", (_, hierarchies, controllers, inUserNamespace, problem) => {
    const found = groupProblem(hierarchies, controllers, inUserNamespace);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(problem);
  });
});
