/** The namespaces of the next command are made while one runs, which changes nothing but the time. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { systemClock } from "../../src/clock.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { NamespaceSupply } from "../../src/engine/sandbox/root/namespace-supply.ts";
import { endHelper } from "../../src/engine/system/helper.ts";
import type { NetworkMode } from "../../src/service/wire/instance.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { usableRuntimes } from "../support/runtimes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

/** Returns child processes that wait for the mounts of the next command. */
function waiting(): number[] {
  return readdirSync(`/proc/${process.pid}/task`)
    .flatMap((thread) => readFileSync(`/proc/${process.pid}/task/${thread}/children`, "utf8").split(" "))
    .filter((pid) => pid !== "" && commandLine(pid).includes("--kill-child"))
    .map(Number);
}

/** Waits until `count` processes wait, because a started one shows its command line only a moment later. */
async function waitingOnce(count: number): Promise<number[]> {
  for (let attempt = 0; attempt < 1000 && waiting().length < count; attempt++) await Bun.sleep(2);
  return waiting();
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

test("one process with namespaces waits after each command", async () => {
  for (const command of ["true", "true"]) {
    await engine.run(base, command);
    expect(await waitingOnce(1)).toHaveLength(1);
  }
});

test("each command has its own namespaces, root and result", async () => {
  const said: (string | undefined)[] = [];
  let image = base;
  for (const word of ["one", "two", "three"]) {
    const run = await engine.run(
      image,
      // The shell itself counts the processes, because one of two in a pipe may not have started yet.
      `cat /said; echo ${word} >> /said; echo $$; set -- /proc/[0-9]*; echo $#`,
    );
    image = run.image ?? "";
    said.push(run.stdout);
  }
  expect(said).toEqual(["1\n1\n", "one\n1\n1\n", "one\ntwo\n1\n1\n"]);
});

test.each<NetworkMode[]>([
  ["none", "default"],
  ["host", "none"],
  ["default", "host"],
])("a command with the network %s after one with %s has the right network", async (mode, before) => {
  await engine.run(base, "true", { networking: { mode: before } });
  const { stdout } = await engine.run(base, "ls /sys/class/net", { networking: { mode } });
  const own = await engine.run(base, "ls /sys/class/net", { networking: { mode } });
  expect(stdout).toBe(own.stdout);
});

test("a waiting process that was killed is replaced", async () => {
  const killed = waiting();
  for (const pid of killed) process.kill(pid, "SIGKILL");
  while (waiting().some((pid) => killed.includes(pid))) await Bun.sleep(2);
  expect((await engine.run(base, "echo here")).stdout).toBe("here\n");
});

test("waiting processes end with the engine", async () => {
  const other = await TestEngine.open();
  const image = await other.importBase();
  const before = waiting();
  await other.run(image, "true");
  expect(await waitingOnce(before.length + 1)).toHaveLength(before.length + 1);
  await other.close();
  expect(waiting()).toEqual(before);
});

describe.each(usableRuntimes().filter((runtime) => runtime === "crun"))("namespaces made for %s", (kind) => {
  const layout = makeLayout(temporaryDirectory());
  const noted = () => readdirSync(layout.containers);
  const runtime = { kind, program: kind, copy: undefined, state: layout.containers, filter: undefined };
  const next = { network: undefined, runtime };
  const environment = { PATH: process.env.PATH };
  const supplyOn = (layers: string) =>
    new NamespaceSupply({
      layout: { ...layout, layers },
      environment,
      clock: systemClock,
      inUserNamespace: false,
    });

  async function end(supply: NamespaceSupply, { helper, groups }: ReturnType<NamespaceSupply["take"]>) {
    endHelper(helper);
    await helper.exited;
    helper.discard?.();
    if (groups !== undefined) supply.release(groups);
  }

  /** Waits, because the environment is empty for a moment after the process executes a program. */
  async function environmentOf(pid: number): Promise<string[]> {
    for (;;) {
      const text = readFileSync(`/proc/${pid}/environ`, "utf8");
      if (text !== "") return text.split("\0");
      await Bun.sleep(1);
    }
  }

  function expectNothingOf(names: readonly string[]) {
    expect(noted()).toEqual([]);
    const groups = readdirSync("/sys/fs/cgroup", { recursive: true }).map(String).join("\n");
    for (const name of names) expect(groups).not.toContain(name);
  }

  test("leave no control groups if their process can't be started", async () => {
    const supply = supplyOn("/nonexistent");
    for (const _ of [1, 2, 3]) expect(() => supply.take(next)).toThrow("ENOENT");
    const names = noted();
    expect(names).toHaveLength(3);
    await supply.close();
    expectNothingOf(names);
  });

  test.each([
    [
      "without a sealed copy gets a directory for its copy",
      undefined,
      [`_LIBCONTAINER_STATEDIR=${layout.containers}`],
    ],
    ["with a sealed copy gets no directory", 0, []],
  ])("crun %s", async (_, copy, variables) => {
    const supply = supplyOn(layout.layers);
    const supplied = supply.take({ network: undefined, runtime: { ...runtime, copy } });
    const environment = await environmentOf(supplied.helper.pid);
    await end(supply, supplied);
    expect(environment.filter((variable) => variable.startsWith("_"))).toEqual(variables);
    await supply.close();
  });

  test("leave no control groups after they were released and the supply is closed", async () => {
    const supply = supplyOn(layout.layers);
    const taken = [1, 2, 3].map(() => supply.take(next));
    const names = noted();
    expect(names).toHaveLength(3);
    for (const supplied of taken) await end(supply, supplied);
    await supply.close();
    expectNothingOf(names);
  });
});
