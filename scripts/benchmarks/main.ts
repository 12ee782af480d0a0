/** `scripts/bench [--check] [--json PATH] [--times N] [NAME ...]`: see README.md beside this file. */
import { cpus, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { renderTable } from "../../src/output/table.ts";
import { type Bench, type Goal, openBench, type Row } from "./bench.ts";
import { measureCachedFiles, measureCachedSteps } from "./cases/cached.ts";
import { measureHashing, measureLargeFile, measureUrl } from "./cases/large.ts";
import { measureParse } from "./cases/parse.ts";
import { measureStartup } from "./cases/startup.ts";
import { measureEngineSteps, measureRemoteSteps } from "./cases/steps.ts";
import { measureDuplicates, measureFirstBuild, measureIgnoredTree, measureMemory } from "./cases/upload.ts";

const cases: Record<string, (bench: Bench) => Promise<Row[]>> = {
  // What takes milliseconds comes first: gigabytes of files leave a machine that has still to tidy up.
  startup: measureStartup,
  parse: measureParse,
  url: measureUrl,
  "cached-steps": measureCachedSteps,
  "cached-files": measureCachedFiles,
  "first-build": measureFirstBuild,
  duplicates: measureDuplicates,
  "large-file": measureLargeFile,
  hashing: measureHashing,
  "remote-steps": measureRemoteSteps,
  "engine-steps": measureEngineSteps,
  ignored: measureIgnoredTree,
  memory: measureMemory,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: "boolean", default: false },
    json: { type: "string", default: "dist/bench.json" },
    times: { type: "string", default: "7" },
  },
});
const unknown = positionals.filter((name) => !Object.hasOwn(cases, name));
if (unknown.length > 0) {
  process.stderr.write(`unknown: ${unknown.join(", ")}. There are: ${Object.keys(cases).join(", ")}\n`);
  process.exit(2);
}

const bench = openBench(Number(values.times));
const rows: Row[] = [];
try {
  for (const [name, measure] of Object.entries(cases)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    process.stderr.write(`${name} ...\n`);
    // What was built or written before reaches the disk now, and not while something is timed.
    Bun.spawnSync(["sync"]);
    rows.push(...(await measure(bench)));
  }
} finally {
  await bench.close();
}

const shown = rows.map((row) => [
  row.case,
  row.bough,
  row.against,
  `${format(row.figure)} ${row.unit}`,
  describeGoal(row.goal),
  isMet(row) ? "met" : "MISSED",
]);
process.stdout.write(renderTable(["CASE", "BOUGH", "AGAINST", "FIGURE", "GOAL", ""], shown));
const machine = {
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  memoryBytes: totalmem(),
  kernel: release(),
  bun: Bun.version,
};
const report = {
  time: new Date().toISOString(),
  machine,
  rows: rows.map((row) => ({ ...row, met: isMet(row) })),
};
await Bun.write(values.json, `${JSON.stringify(report, null, 2)}\n`);
const missed = rows.filter((row) => !isMet(row)).length;
process.stdout.write(`${rows.length - missed} goals met, ${missed} missed; figures in ${values.json}\n`);
if (values.check && missed > 0) process.exit(1);

function isMet({ figure, goal }: Row): boolean {
  return "atMost" in goal ? figure <= goal.atMost : figure >= goal.atLeast;
}

function describeGoal(goal: Goal): string {
  return "atMost" in goal ? `at most ${goal.atMost}` : `at least ${goal.atLeast}`;
}

function format(figure: number): string {
  return figure >= 100 || Number.isInteger(figure) ? figure.toFixed(0) : figure.toPrecision(3);
}
