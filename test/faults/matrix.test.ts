/**
 * Every call of the client with every fault: once, and for good. The outcome, the number of attempts and the kind of message are
 * in `test/cases/faults/`, one file per call; `UPDATE_GOLDEN=1` writes them. What must hold for all calls is asserted here.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { type Fault, faults } from "../fake-service/faults.ts";
import { startFaultyFront } from "../fake-service/faulty-front.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf } from "../service/client.ts";
import { expectGolden } from "../support/golden.ts";
import { type Endpoint, endpoints } from "./endpoints.ts";
import { classify } from "./outcome.ts";

const token = "tok-5ecret";
const cases = join(import.meta.dir, "../cases/faults");

/** The text of a cell of the table, and the values that are checked. */
interface Cell {
  text: string;
  error: unknown;
  /** The number of commands that the service ran. */
  runs: number;
  seconds: number;
}

describe("the fault matrix", () => {
  test.each(endpoints.map((endpoint) => [endpoint.name, endpoint] as const))(
    "%s",
    async (name, endpoint) => {
      const rows: string[][] = [];
      const problems: string[] = [];
      for (const [title, fault] of Object.entries(faults)) {
        if (process.env.TRACE) process.stderr.write(`${title}\n`);
        const once = await runCell(endpoint, fault, 1);
        if (process.env.TRACE) process.stderr.write(`${once.text}\n`);
        const always = await runCell(endpoint, fault, Number.POSITIVE_INFINITY);
        for (const cell of [once, always])
          problems.push(...problemsOf(endpoint, fault, cell).map((problem) => `${title}: ${problem}`));
        rows.push([title, once.text, always.text]);
      }
      const table = render(name, rows);
      const golden = join(cases, `${name.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}.txt`);
      process.stderr.write(`${table}\n`);
      expect(problems).toEqual([]);
      expectGolden(golden, table);
    },
    180_000,
  );
});

async function runCell(endpoint: Endpoint, fault: Fault, times: number): Promise<Cell> {
  // Waits end at once, deadlines only while a connection is silent.
  const clock = createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
  const fake = await startFakeService();
  let isArmed = false;
  let faultCount = 0;
  const isFaulty = (call: string) => isArmed && endpoint.calls.test(call) && faultCount++ < times;
  const front = await startFaultyFront(fake, {
    script: (call) => (fault.kind !== "refused" && isFaulty(call) ? fault : undefined),
    refuses: (call) => fault.kind === "refused" && isFaulty(call),
    onStall: async (isGivenUp) => {
      while (!isGivenUp()) await clock.advance(1000);
    },
  });
  const { service, interrupt } = clientOf(front.url, { clock, token, fetch: front.fetch });
  try {
    // bough gives up sooner on an address that has never responded; transport.test.ts tests that.
    await service.whoami();
    const work = await endpoint.prepare(service, fake);
    const began = clock.now();
    const runsBefore = fake.state.instances.length;
    const callsBefore = front.calls.length;
    isArmed = true;
    const { error, outcome } = await classify(work);
    isArmed = false;
    const made = front.calls.slice(callsBefore).filter((call) => endpoint.calls.test(call)).length;
    const seconds = (clock.now() - began) / 1000;
    const text = `${outcome}, ${made === 1 ? "1 attempt" : `${made} attempts`}`;
    return { text, error, runs: fake.state.instances.length - runsBefore, seconds };
  } finally {
    interrupt.abort(new Error("the test is over"));
    await front.close();
    await fake.close();
  }
}

/** Returns violations of what must hold for every call and every fault. */
function problemsOf(endpoint: Endpoint, fault: Fault, { error, runs, seconds }: Cell): string[] {
  const problems: string[] = [];
  const check = (holds: boolean, what: string) => holds || problems.push(what);
  check(runs <= 1, `the command was run ${runs} times`);
  check(seconds <= 900, `it took ${seconds} seconds`);
  if (error === undefined) return problems;
  if (!(error instanceof BoughError)) return [...problems, `not an error for people: ${error}`];
  const message = `${error.message}\n${error.hint}`;
  const method = endpoint.name.split(" ", 1)[0];
  check(
    new RegExp(`${method} http://127\\.0\\.0\\.1:\\d+/v1/`).test(message),
    `the call and its address are not named: ${message}`,
  );
  check(error.hint !== undefined, `no next step: ${message}`);
  check(!Bun.inspect(error, { depth: 10 }).includes(token), `the token is shown: ${message}`);
  if (fault.kind === "answer" && fault.status >= 400) {
    check(message.includes(` ${fault.status} `), `the status is not named: ${message}`);
    check(/not today|Gateway lost/.test(message), `the server's words are missing: ${message}`);
  }
  return problems;
}

function render(name: string, rows: readonly (readonly string[])[]): string {
  const all = [["fault", "once", "for good"], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [name, ...lines, ""].join("\n");
}
