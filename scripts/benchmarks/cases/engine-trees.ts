import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Row } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { writeManyFiles } from "../contexts.ts";
import { alternate, type Command, run } from "../measure.ts";

const dockerfile = "FROM base:1\nCOPY . /app/\nRUN true\n";

/** Measures 100,000 files on the engine: the memory of a first build, and the longest pause of its live view. */
export async function measureEngineMemory(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const [watched, shown] = ["engine-memory", "engine-pauses"].map((name) => {
    const context = bench.directory(name);
    writeFileSync(join(context, "Dockerfile"), dockerfile);
    writeManyFiles(context, { count: 100_000, bytes: 64 });
    return context;
  });
  const { peakBytes, milliseconds } = await run(bench.build(watched ?? "", "engine"), {
    watches: true,
  });
  const name = "100,000 files on the engine, first build";
  return [
    {
      case: name,
      bough: `${(milliseconds / 1000).toFixed(1)} s`,
      against: "",
      figure: peakBytes / 2 ** 20,
      unit: "MiB",
      goal: { atMost: 200 },
    },
    {
      case: name,
      bough: "longest pause of the live view",
      against: "",
      figure: await longestPause(bench.build(shown ?? "", "engine")),
      unit: "ms",
      goal: { atMost: 100 },
    },
  ];
}

/** The time between two frames of the live view. */
const frameMilliseconds = 100;

/** Returns the largest delay of a frame in milliseconds, on a terminal of its own. */
async function longestPause({ words, env }: Command): Promise<number> {
  const child = Bun.spawn(
    ["script", "--quiet", "--flush", "--return", "--command", words.join(" "), "/dev/null"],
    {
      env: { PATH: process.env.PATH ?? "", TERM: "xterm-256color", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  let longest = 0;
  let last: number | undefined;
  for await (const _ of child.stdout) {
    const now = performance.now();
    longest = Math.max(longest, now - (last ?? now));
    last = now;
  }
  if ((await child.exited) !== 0) throw new Error(`${words.join(" ")}: exit code ${child.exitCode}`);
  return longest - frameMilliseconds;
}

const levels = 500;

/** Compares nested directories with a file each with as many directories side by side. */
export async function measureDeepTree(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const write = (name: string, directoryOf: (index: number) => string) => (round: number) => {
    const context = bench.directory(`${name}-${round}`);
    writeFileSync(join(context, "Dockerfile"), dockerfile);
    for (let index = 0; index < levels; index++) {
      const directory = join(context, directoryOf(index));
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, "file"), `${round} ${index}`);
    }
    return context;
  };
  const time = (make: (round: number) => string) => {
    let round = 0;
    return async () => (await run(bench.build(make(round++), "engine"))).milliseconds;
  };
  const [deep = 0, wide = 0] = await alternate(
    bench.times,
    time(write("deep", (index) => "d/".repeat(index + 1))),
    time(write("wide", (index) => `d${index}`)),
  );
  return [
    {
      case: "500 levels of directories, first build",
      bough: `${deep.toFixed(0)} ms, engine`,
      against: `${wide.toFixed(0)} ms, side by side`,
      figure: deep / wide,
      unit: "times",
      goal: { atMost: 3 },
    },
  ];
}
