/** Each command has its own namespaces. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { makeLayout } from "../../src/engine/layout.ts";
import { startNamespace } from "../../src/engine/sandbox/root/mount-namespace.ts";
import { Crun } from "../../src/engine/sandbox/runtime/crun.ts";
import { endHelper } from "../../src/programs/helper.ts";
import type { NetworkMode } from "../../src/service/wire/instance.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { usableRuntimes } from "../support/runtimes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

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

describe.each(usableRuntimes().filter((runtime) => runtime === "crun"))("%s", () => {
  const layout = makeLayout(temporaryDirectory());

  /** Waits, because the environment is empty for a moment after the process executes a program. */
  async function environmentOf(pid: number): Promise<string[]> {
    for (;;) {
      const text = readFileSync(`/proc/${pid}/environ`, "utf8");
      if (text !== "") return text.split("\0");
      await Bun.sleep(1);
    }
  }

  test.each([
    ["without a sealed copy", undefined, [`_LIBCONTAINER_STATEDIR=${layout.containers}`]],
    ["with a sealed copy", 0, []],
  ])("%s has a directory for a copy only if it needs one", async (_, copy, variables) => {
    const runtime = new Crun({ program: "crun", state: layout.containers, copy, filter: undefined });
    const helper = startNamespace(layout, { PATH: process.env.PATH }, { forCommand: true, runtime });
    const environment = await environmentOf(helper.pid);
    endHelper(helper);
    await helper.exited;
    helper.discard?.();
    expect(environment.filter((variable) => variable.startsWith("_"))).toEqual(variables);
  });
});
