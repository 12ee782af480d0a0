/** crun is run from a copy in memory. */
import { expect, test } from "bun:test";
import { closeSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSealedCopy } from "../../src/engine/sandbox/runtime/choice.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { openTargets } from "../support/descriptors.ts";
import { openInput, TestEngine } from "../support/engine.ts";
import { usableRuntimes } from "../support/runtimes.ts";

const path = process.env.PATH;
const copy = "/memfd:crun (deleted)";

/** Returns the programs of all descendants of a process. */
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
  "%s is run from the engine's copy for all processes, makes no other copy, and the copy ends with the engine",
  async (runtime) => {
    const engine = await TestEngine.open({ environment: { PATH: path, BOUGH_RUNTIME: runtime } });
    const image = await engine.importBase();
    const instance = await engine.start({ image, command: "cat", stdin: openInput, disposable: true });
    const processes = `/v1/operations/${instance.uuid}/subprocesses`;
    await engine.json("POST", processes, { command: "cat", stdin: openInput });
    let programs: string[];
    const among = (pattern: RegExp) => programs.filter((program) => pattern.test(program));
    // A crun that starts a command has a child that is crun, too, until it becomes the command.
    do {
      await Bun.sleep(2);
      programs = programsBelow(process.pid);
    } while (among(/busybox/).length < 2 || among(/crun/).length > 2);
    // A crun that makes its own copy has another name, of a file in memory or in /tmp.
    expect(among(/crun/)).toEqual([copy, copy]);
    expect(openTargets()).toContain(copy);
    await engine.json("DELETE", `/v1/operations/${instance.uuid}`);
    await engine.finish(instance);
    await engine.close();
    expect(openTargets()).not.toContain(copy);
  },
);

test("a sealed copy runs as the program and cannot be changed", () => {
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
