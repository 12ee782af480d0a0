/**
 * Every call of the client, and everything that can go wrong with it: once, and for good. What comes of it, after how
 * many attempts, and with what kind of message is in `test/cases/faults/`, one file a call; `UPDATE_GOLDEN=1` writes
 * them. What must hold for all of them is asserted here.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { type Fault, faults } from "../fake-service/faults.ts";
import { startFaultyFront } from "../fake-service/faulty-front.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf } from "../service/client.ts";
import { type Endpoint, endpoints } from "./endpoints.ts";
import { classify } from "./outcome.ts";

const token = "tok-5ecret";
const cases = join(import.meta.dir, "../cases/faults");

/** What one cell of the table says, and what is checked of it. */
interface Met {
  text: string;
  error: unknown;
  /** The commands that the service was made to run. */
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
        const once = await meet(endpoint, fault, 1);
        if (process.env.TRACE) process.stderr.write(`${once.text}\n`);
        const always = await meet(endpoint, fault, Number.POSITIVE_INFINITY);
        for (const met of [once, always])
          problems.push(...problemsOf(endpoint, fault, met).map((problem) => `${title}: ${problem}`));
        rows.push([title, once.text, always.text]);
      }
      const table = render(name, rows);
      const golden = join(cases, `${name.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}.txt`);
      if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, table);
      process.stderr.write(`${table}\n`);
      expect(problems).toEqual([]);
      expect(table).toBe(existsSync(golden) ? readFileSync(golden, "utf8") : "");
    },
    60_000,
  );
});

async function meet(endpoint: Endpoint, fault: Fault, times: number): Promise<Met> {
  // Waits are over at once, deadlines only when a connection has fallen silent.
  const clock = createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
  const fake = await startFakeService();
  let isArmed = false;
  let struck = 0;
  const strikes = (call: string) => isArmed && endpoint.calls.test(call) && struck++ < times;
  const front = await startFaultyFront(fake, {
    script: (call) => (fault.kind !== "refused" && strikes(call) ? fault : undefined),
    refuses: (call) => fault.kind === "refused" && strikes(call),
    onStall: async (isGivenUp) => {
      while (!isGivenUp()) await clock.advance(1000);
    },
  });
  const { service, interrupt } = clientOf(front.url, { clock, token, fetch: front.fetch });
  try {
    // An address that has never answered is given up sooner; that is a matter of transport.test.ts.
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

/** What does not hold, though it should whatever the call and whatever the fault. */
function problemsOf(endpoint: Endpoint, fault: Fault, { error, runs, seconds }: Met): string[] {
  const problems: string[] = [];
  const require = (holds: boolean, what: string) => holds || problems.push(what);
  require(runs <= 1, `the command was run ${runs} times`);
  require(seconds <= 900, `it took ${seconds} seconds`);
  if (error === undefined) return problems;
  if (!(error instanceof BoughError)) return [...problems, `not an error for people: ${error}`];
  const told = `${error.message}\n${error.hint}`;
  const method = endpoint.name.split(" ", 1)[0];
  require(new RegExp(`${method} http://127\\.0\\.0\\.1:\\d+/v1/`).test(
    told,
  ), `the call and its address are not named: ${told}`);
  require(error.hint !== undefined, `no next step: ${told}`);
  require(!Bun.inspect(error, { depth: 10 }).includes(token), `the token is shown: ${told}`);
  if (fault.kind === "answer" && fault.status >= 400) {
    require(told.includes(` ${fault.status} `), `the status is not named: ${told}`);
    require(/not today|Gateway lost/.test(told), `the server's words are missing: ${told}`);
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
