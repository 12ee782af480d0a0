import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { lastingProcesses } from "../support/processes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

interface Found {
  matches: { line_number: number; type: string }[];
  truncated: boolean;
}

const { engine, base } = await openSharedEngine();

test.each([
  ["as many as asked for, with their context", 2, [1, 2, 3, 4], true],
  ["all of fewer", 10, [1, 2, 3, 4, 5, 6], false],
])("a search returns %s", async (_, max, lines, truncated) => {
  const { image } = await engine.run(base, "printf 'x\\n1\\nx\\n2\\nx\\n3\\n' > /found");
  const query = `path=/found&pattern=x&after=1&max_total=${max}`;
  const found = await engine.json<Found>("GET", `/v1/inspect/${image}/grep?${query}`);
  expect(found.matches.map(({ line_number }) => line_number)).toEqual(lines);
  expect(found.truncated).toBe(truncated);
});

test.each([
  ["x(", "unclosed group"],
  ["[z-a]", "invalid character class range, the start must be <= the end"],
])("the pattern %s is refused for its mistake", async (pattern, reason) => {
  const answer = await engine.fetch("GET", `/v1/inspect/${base}/grep?pattern=${encodeURIComponent(pattern)}`);
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { error: `invalid pattern: ${reason}`, status: 400 },
  ]);
});

test("a search ends with the last match that it returns, however many follow", async () => {
  const data = {
    path: { text: "/x" },
    lines: { text: "x\n" },
    line_number: 1,
    absolute_offset: 0,
    submatches: [],
  };
  const programs = temporaryDirectory();
  const program = join(programs, "rg");
  const line = JSON.stringify({ type: "match", data });
  writeFileSync(program, `#!/bin/sh\nfor n in 1 2 3 4; do printf '%s\\n' '${line}'; done; exec sleep 1234\n`);
  chmodSync(program, 0o755);
  const environment = { PATH: `${programs}:${process.env.PATH}` };
  const other = await TestEngine.open({ directory: engine.directory, environment });
  const found = await other.json<Found>("GET", `/v1/inspect/${base}/grep?pattern=x&max_total=3`);
  expect(found).toMatchObject({ matches: [{ type: "match" }, {}, {}], truncated: true });
  expect(found.matches).toHaveLength(3);
  expect(await lastingProcesses("sleep 1234")).toEqual([]);
  await other.engine.close();
});
