/** The copy in memory that crun is run from. */
import { expect, test } from "bun:test";
import { closeSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSealedCopy } from "../../src/engine/sandbox/runtime/sealed-copy.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { openInput, TestEngine } from "../support/engine.ts";
import { usableRuntimes } from "../support/runtimes.ts";

const path = process.env.PATH;

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
