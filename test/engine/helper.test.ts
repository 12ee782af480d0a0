/** Programs that the engine starts: none outlives its deadline, nor does what it has started. */
import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { endHelper, runHelper, sendLine, startHelper } from "../../src/engine/system/helper.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { commandLines } from "../support/processes.ts";

const environment = { PATH: process.env.PATH ?? "" };

test.each([
  ["what it says", "echo out; echo err >&2", { status: 0, stdout: "out\n", stderr: "err\n" }],
  ["its status", "exit 3", { status: 3, stdout: "", stderr: "" }],
  ["a signal as shells have it", "kill -9 $$", { status: 137, stdout: "", stderr: "" }],
  ["no input", "cat", { status: 0, stdout: "", stderr: "" }],
  ["a session of its own", 'ps -o sid= -p $$ | tr -d " \\n"; test $(ps -o sid= -p $$) = $$', { status: 0 }],
])("a helper's end: %s", async (_, script, end) => {
  const options = { environment, clock: systemClock, seconds: 60 };
  expect(await runHelper(["sh", "-c", script], options)).toMatchObject(end);
});

test("a child that it leaves behind, its pipes still open, is neither waited for nor left", async () => {
  const mark = `2${Date.now()}.5`;
  const script = `sleep ${mark} & echo started`;
  const options = { environment, clock: systemClock, seconds: 60 };
  expect(await runHelper(["sh", "-c", script], options)).toMatchObject({ status: 0, stdout: "started\n" });
  expect(await running(mark)).toEqual([]);
});

test.each([
  ["has ended", "exit 3", 3],
  ["does not read", "exec <&-; echo; sleep 0.2; exit 4", 4],
  ["waits for it", "echo; read -r go && exit 5", 5],
])("letting go on one that %s leaves the rest to its end", async (_, script, status) => {
  const helper = startHelper(["sh", "-c", script], { environment });
  try {
    const output = helper.stdout[Symbol.asyncIterator]();
    await output.next();
    await sendLine(helper);
    await helper.stdin.end();
    expect(await helper.exited).toBe(status);
  } finally {
    endHelper(helper);
  }
});

describe("one that stands still is killed with all that it started", () => {
  // Ignores what can be ignored, and has a child that does, too.
  const stubborn = (mark: string) => `trap "" TERM INT HUP; sleep ${mark} & sleep ${mark}`;

  test("when its deadline has passed: the error names the program, the time and what to do", async () => {
    const mark = `3${Date.now()}.5`;
    const clock = createManualClock();
    const command = ["/bin/sh", "-c", stubborn(mark)];
    const ended = runHelper(command, { environment, clock, seconds: 10 }).catch((error) => error);
    await started(mark, 2);
    await clock.advance(10_000);
    expect(await ended).toMatchObject({
      message: "sh did not end within 10 seconds, and was stopped",
      hint: `Run it by hand to see where it hangs: ${command.join(" ")}`,
    });
    expect(await running(mark)).toEqual([]);
  });

  test("when what it works for is given up", async () => {
    const mark = `4${Date.now()}.5`;
    const given = new AbortController();
    const options = { environment, clock: createManualClock(), seconds: 10, signal: given.signal };
    const ended = runHelper(["sh", "-c", stubborn(mark)], options).catch((error) => error);
    await started(mark, 2);
    given.abort(new Error("given up"));
    expect(await ended).toMatchObject({ message: "given up" });
    expect(await running(mark)).toEqual([]);
  });
});

async function started(mark: string, count: number): Promise<void> {
  while (find(mark).length < count) await Bun.sleep(5);
}

/** Killed processes are gone at once, but not in the same instant. */
async function running(mark: string): Promise<string[]> {
  for (let attempt = 0; attempt < 200 && find(mark).length > 0; attempt++) await Bun.sleep(10);
  return find(mark);
}

function find(mark: string): string[] {
  return commandLines().filter((line) => line === `sleep ${mark}`);
}
