import type { GlobalOptions } from "./cli/globals.ts";
import { runCommandLine } from "./cli/index.ts";
import type { Output, Runtime } from "./cli/runtime.ts";
import { systemClock } from "./clock.ts";
import { BoughError, exitCodes } from "./errors.ts";
import { describeFailure } from "./output/failure.ts";

const interruption = new AbortController();

/** The first signal ends the work in good order; a second one ends the process. */
function interrupt(): void {
  if (interruption.signal.aborted) process.exit(exitCodes.interrupted);
  interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
}

function outputOf(stream: NodeJS.WriteStream): Output {
  return {
    write: (text) => void stream.write(text),
    isTerminal: stream.isTTY === true,
    columns: stream.columns ?? 80,
  };
}

const runtime: Runtime = {
  environment: process.env,
  workingDirectory: process.cwd(),
  platform: process.platform,
  stdout: outputOf(process.stdout),
  stderr: outputOf(process.stderr),
  clock: systemClock,
  signal: interruption.signal,
  fetch: (input, init) => fetch(input, init),
};

process.on("SIGINT", interrupt);
process.on("SIGTERM", interrupt);
// `bough images | head -1`: whoever reads has read enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) =>
  process.exit(error.code === "EPIPE" ? 0 : exitCodes.failed),
);

void main();

/** No top-level await: the compiled program's bytecode cache has no room for it. */
async function main(): Promise<void> {
  let globals: GlobalOptions | undefined;
  let exitCode = 0;
  try {
    await runCommandLine(process.argv.slice(2), runtime, (known) => {
      globals = known;
    });
  } catch (error) {
    const failure = describeFailure(error, globals?.format ?? "table");
    runtime.stderr.write(failure.text);
    exitCode = failure.exitCode;
  }
  // Exiting drops what a pipe has not taken yet.
  const streams = [process.stdout, process.stderr];
  await Promise.all(streams.map((stream) => new Promise((resolve) => stream.write("", resolve))));
  process.exit(exitCode);
}
