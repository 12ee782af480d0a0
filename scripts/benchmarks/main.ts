/** `scripts/bench [--check] [--json PATH] [--times N] [NAME ...]`: see README.md beside this file. */
import { writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { renderTable } from "../../src/terminal/table.ts";
import { runScript } from "../run-script.ts";
import { type Bench, type Goal, openBench, type Row } from "./bench.ts";
import { measureAgainstDocker } from "./cases/against-docker.ts";
import { measureBuildsAtOnce } from "./cases/builds-at-once.ts";
import { measureCachedFiles, measureCachedSteps } from "./cases/cached.ts";
import { measureChangedCopy, measureManyCopies } from "./cases/copies.ts";
import { measureEngineFile, measureEngineFiles, measureEngineMounts } from "./cases/engine-files.ts";
import { measureDeepTree, measureEngineMemory } from "./cases/engine-trees.ts";
import { measureExport, measureUnchangedPush } from "./cases/export.ts";
import { measureFarBuilds, measureFarCommands, measureFarFiles, measureFarLargeFile } from "./cases/far.ts";
import { measureGrowingHome, measureGrowingTargets } from "./cases/growing-stores.ts";
import {
  measureGrowingBuilds,
  measureGrowingFiles,
  measureGrowingLayers,
  measureGrowingSteps,
} from "./cases/growth.ts";
import { measureImport } from "./cases/import.ts";
import { measureImportedArchive } from "./cases/imported-archive.ts";
import { measureHashing, measureImageFile, measureLargeFile, measureUrl } from "./cases/large.ts";
import { measureParse } from "./cases/parse.ts";
import { measurePushedTargets } from "./cases/pushed-targets.ts";
import { measureRegistryCache } from "./cases/registry-cache.ts";
import { measureScopes } from "./cases/scopes.ts";
import {
  measureCachedStages,
  measureCopiedTree,
  measurePlatforms,
  measureStagesAtOnce,
} from "./cases/stages.ts";
import { measureStartup } from "./cases/startup.ts";
import { measureEngineOutput, measureEngineSteps, measureRemoteSteps } from "./cases/steps.ts";
import {
  measureDuplicates,
  measureFarService,
  measureFirstBuild,
  measureIgnoredTree,
  measureMemory,
} from "./cases/upload.ts";

const cases: Record<string, (bench: Bench) => Promise<Row[]>> = {
  // Cases of milliseconds come first: after gigabytes of files, a machine is still busy with cleaning up.
  startup: measureStartup,
  parse: measureParse,
  url: measureUrl,
  "cached-steps": measureCachedSteps,
  "cached-stages": measureCachedStages,
  "cached-files": measureCachedFiles,
  scopes: measureScopes,
  "first-build": measureFirstBuild,
  "far-service": measureFarService,
  "far-builds": measureFarBuilds,
  "far-files": measureFarFiles,
  "far-commands": measureFarCommands,
  "far-large": measureFarLargeFile,
  duplicates: measureDuplicates,
  "large-file": measureLargeFile,
  hashing: measureHashing,
  "remote-steps": measureRemoteSteps,
  "engine-steps": measureEngineSteps,
  "engine-output": measureEngineOutput,
  "builds-at-once": measureBuildsAtOnce,
  "against-docker": measureAgainstDocker,
  "stages-at-once": measureStagesAtOnce,
  platforms: measurePlatforms,
  "engine-files": measureEngineFiles,
  "many-copies": measureManyCopies,
  "changed-copy": measureChangedCopy,
  "engine-mounts": measureEngineMounts,
  "engine-file": measureEngineFile,
  "engine-memory": measureEngineMemory,
  "deep-tree": measureDeepTree,
  "copied-tree": measureCopiedTree,
  "image-file": measureImageFile,
  import: measureImport,
  "imported-archive": measureImportedArchive,
  export: measureExport,
  push: measureUnchangedPush,
  "registry-cache": measureRegistryCache,
  "pushed-targets": measurePushedTargets,
  ignored: measureIgnoredTree,
  memory: measureMemory,
  "growing-steps": measureGrowingSteps,
  "growing-layers": measureGrowingLayers,
  "growing-builds": measureGrowingBuilds,
  "growing-home": measureGrowingHome,
  "growing-targets": measureGrowingTargets,
  "growing-files": measureGrowingFiles,
};

await runScript(async () => {
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
    process.stderr.write(`unknown: ${unknown.join(", ")}; known: ${Object.keys(cases).join(", ")}\n`);
    process.exitCode = 2;
    return;
  }
  const names = positionals.length > 0 ? positionals : Object.keys(cases);
  const before = loadavg();
  const rows = await measureAll(names, openBench(Number(values.times)));
  report(rows, { before, after: loadavg() }, values.json);
  if (values.check && rows.some((row) => !isMet(row))) process.exitCode = 1;
});

async function measureAll(names: readonly string[], bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  try {
    for (const [name, measure] of Object.entries(cases)) {
      if (!names.includes(name)) continue;
      process.stderr.write(`${name} ...\n`);
      // Earlier writes reach the disk now, not while something is timed.
      Bun.spawnSync(["sync"]);
      rows.push(...(await measure(bench)));
    }
  } finally {
    await bench.close();
  }
  return rows;
}

/** The load of the machine over 1, 5 and 15 minutes. After the measurement, the bench is part of it. */
interface Load {
  before: number[];
  after: number[];
}

function report(rows: readonly Row[], load: Load, path: string): void {
  const shown = rows.map((row) => [
    row.case,
    row.bough,
    row.against,
    `${format(row.figure)} ${row.unit}`,
    describeGoal(row.goal),
    isMet(row) ? "met" : "MISSED",
  ]);
  process.stdout.write(
    renderTable({ header: ["CASE", "BOUGH", "AGAINST", "FIGURE", "GOAL", ""], rows: shown }),
  );
  const machine = {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: release(),
    bun: Bun.version,
  };
  const document = {
    time: new Date().toISOString(),
    machine,
    load,
    rows: rows.map((row) => ({ ...row, met: isMet(row) })),
  };
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`);
  const [loadBefore = 0] = load.before;
  if (loadBefore > 1)
    process.stdout.write(
      `the load was ${loadBefore.toFixed(1)} when the measurement began: only ratios and processor times mean something\n`,
    );
  const missed = rows.filter((row) => !isMet(row)).length;
  process.stdout.write(`${rows.length - missed} goals met, ${missed} missed; figures in ${path}\n`);
}

function isMet({ figure, goal }: Row): boolean {
  return "atMost" in goal ? figure <= goal.atMost : figure >= goal.atLeast;
}

function describeGoal(goal: Goal): string {
  return "atMost" in goal ? `at most ${goal.atMost}` : `at least ${goal.atLeast}`;
}

function format(figure: number): string {
  return figure >= 100 || Number.isInteger(figure) ? figure.toFixed(0) : figure.toPrecision(3);
}
