import { readFileSync } from "node:fs";
import { temporaryDirectory } from "../../support/bough.ts";
import { compileBough } from "../../support/compiled.ts";
import { endOf } from "../../support/ended.ts";

interface Measured {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The peak memory of the process. */
  peakMegabytes: number;
  seconds: number;
}

/** Runs bough in a separate process with a new state directory, on the service at `url`. */
export async function runMeasured(
  words: readonly string[],
  url: string,
  workingDirectory = temporaryDirectory(),
): Promise<Measured> {
  const started = performance.now();
  const child = Bun.spawn([compileBough(), "--url", url, "--token", "t0ken-t0ken", ...words], {
    cwd: workingDirectory,
    env: { PATH: process.env.PATH ?? "", HOME: workingDirectory, BOUGH_HOME: temporaryDirectory() },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let peakMegabytes = 0;
  const watch = setInterval(() => {
    peakMegabytes = peakOf(child.pid) ?? peakMegabytes;
  }, 10);
  const ended = await endOf(child);
  clearInterval(watch);
  return { ...ended, peakMegabytes, seconds: (performance.now() - started) / 1000 };
}

/** Returns the peak memory of a process in megabytes. `ru_maxrss` would include memory of the process that started it. */
export function peakOf(pid: number): number | undefined {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : (Number(kilobytes) * 1024) / 1_000_000;
  } catch {
    // The process has just ended.
    return undefined;
  }
}
