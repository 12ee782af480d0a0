import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";

export interface Measured {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The most memory that the process ever had. */
  peakMegabytes: number;
  seconds: number;
}

const main = join(import.meta.dir, "../../../src/main.ts");

/** Runs bough in a process of its own, on the service at `url`, with a state of its own. */
export async function runMeasured(
  words: readonly string[],
  url: string,
  workingDirectory = temporaryDirectory(),
): Promise<Measured> {
  const started = performance.now();
  const child = Bun.spawn([process.execPath, main, "--url", url, "--token", "t0ken-t0ken", ...words], {
    cwd: workingDirectory,
    env: { PATH: process.env.PATH ?? "", HOME: workingDirectory, BOUGH_HOME: temporaryDirectory() },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const exitCode = await child.exited;
  return {
    ...{ exitCode, stdout, stderr },
    peakMegabytes: (child.resourceUsage()?.maxRSS ?? Number.NaN) / 1_000_000,
    seconds: (performance.now() - started) / 1000,
  };
}
