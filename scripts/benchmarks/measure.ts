/** Runs programs and measures their times. */
import { readdirSync, readFileSync } from "node:fs";

export interface Command {
  words: readonly string[];
  cwd?: string;
  env?: Record<string, string>;
}

export interface Run {
  milliseconds: number;
  stdout: string;
  stderr: string;
  /** The peak resident memory; 0 if the run was not watched. */
  peakBytes: number;
  /** The processor time of the program and of those that it waited for. */
  processorSeconds: number;
  /** The bytes read by any call until the last look at the process. */
  readBytes: number;
}

/**
 * Runs a program in a session of its own, as a daemon has one: the kernel shares processors between sessions. Rejects if it fails: the time of a
 * failure means nothing.
 */
export async function run({ words, cwd, env }: Command, options: { watches?: boolean } = {}): Promise<Run> {
  const started = performance.now();
  const child = Bun.spawn([...words], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...env },
    stdin: "ignore",
    detached: true,
    stdout: "pipe",
    stderr: "pipe",
  });
  let peakBytes = 0;
  let readBytes = 0;
  const watch = options.watches
    ? setInterval(() => {
        peakBytes = Math.max(peakBytes, peakOf(child.pid));
        readBytes = Math.max(readBytes, readOf(child.pid));
      }, watchMilliseconds)
    : undefined;
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const milliseconds = performance.now() - started;
  clearInterval(watch);
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: exit code ${exitCode}\n${stderr}${stdout}`);
  const processorSeconds = Number(child.resourceUsage()?.cpuTime.total ?? Number.NaN) / 1e6;
  return { milliseconds, stdout, stderr, peakBytes, processorSeconds, readBytes };
}

/** The kernel keeps the peak, so a look shortly before the end is enough; each look takes processor time. */
const watchMilliseconds = 25;

/** Reads the peak from the kernel: `ru_maxrss` of a child would include memory of its parent. */
function peakOf(pid: number): number {
  return numberIn(`/proc/${pid}/status`, /^VmHWM:\s+(\d+) kB$/m) * 1024;
}

function readOf(pid: number): number {
  return numberIn(`/proc/${pid}/io`, /^rchar: (\d+)$/m);
}

/** Returns the processor time of a process, of its children, and of those that any of them has waited for. */
export function treeSeconds(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`);
  // Behind the name, which may have spaces: utime, stime, cutime and cstime are fields 14 to 17.
  const ticks = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 15)
    .map(Number);
  const tasks = stat === "" ? [] : readdirSync(`/proc/${pid}/task`);
  const children = tasks.flatMap((task) =>
    textOf(`/proc/${pid}/task/${task}/children`)
      .split(" ")
      .filter((each) => each !== ""),
  );
  const own = ticks.reduce((sum, each) => sum + each, 0) / ticksPerSecond;
  return children.reduce((sum, child) => sum + treeSeconds(Number(child)), own);
}

/** `sysconf(_SC_CLK_TCK)`, which is the same on every Linux. */
const ticksPerSecond = 100;

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended meanwhile.
    return "";
  }
}

function numberIn(path: string, pattern: RegExp): number {
  return Number(pattern.exec(textOf(path))?.[1] ?? 0);
}

/**
 * Runs the actions in turn, several times, so that other load affects all equally. Writes reach the disk before the next action,
 * which may wait for the disk, as bough's engine does. Returns the medians in order.
 */
export async function alternate(times: number, ...actions: (() => Promise<number>)[]): Promise<number[]> {
  const samples = actions.map((): number[] => []);
  for (let round = 0; round < times; round++) {
    for (const [index, action] of actions.entries()) {
      Bun.spawnSync(["sync"]);
      samples[index]?.push(await action());
    }
  }
  return samples.map(median);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}
