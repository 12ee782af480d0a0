/** Programs that the engine starts: neither they nor their children outlive their deadline. */
import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { endHelper, runHelper, sendLine, startHelper } from "../../src/programs/helper.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { commandLines } from "../support/processes.ts";

const environment = { PATH: process.env.PATH ?? "" };

test.each([
  ["output", "echo out; echo err >&2", { status: 0, stdout: "out\n", stderr: "err\n" }],
  ["exit code", "exit 3", { status: 3, stdout: "", stderr: "" }],
  ["exit code after a signal, as in a shell", "kill -9 $$", { status: 137, stdout: "", stderr: "" }],
  ["empty input", "cat", { status: 0, stdout: "", stderr: "" }],
  ["own session", 'ps -o sid= -p $$ | tr -d " \\n"; test $(ps -o sid= -p $$) = $$', { status: 0 }],
])("a helper has the right %s", async (_, script, end) => {
  const options = { environment, clock: systemClock, seconds: 60 };
  expect(await runHelper(["sh", "-c", script], options)).toMatchObject(end);
});

test("a child of a helper that keeps its pipes open is killed at the helper's end", async () => {
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
])("sending a line to a helper that %s is not an error", async (_, script, status) => {
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

describe("a helper that hangs is killed with its children", () => {
  // The helper and its child ignore all signals that can be ignored.
  const stubborn = (mark: string) => `trap "" TERM INT HUP; sleep ${mark} & sleep ${mark}`;

  test("at its deadline, with an error that has the program, the time and a hint", async () => {
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

  test("when its caller's signal is aborted", async () => {
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

/** Killed processes disappear within moments. */
async function running(mark: string): Promise<string[]> {
  for (let attempt = 0; attempt < 200 && find(mark).length > 0; attempt++) await Bun.sleep(10);
  return find(mark);
}

function find(mark: string): string[] {
  return commandLines().filter((line) => line === `sleep ${mark}`);
}
