/** `--on-error shell`: a shell in the place of a step that has failed. */
import { describeFailure, failureOf } from "../../terminal/failure.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import type { Invocation } from "../command-line/command.ts";
import { sessionKey } from "../references/session-argument.ts";
import { failedStepOf } from "../run/failed-step.ts";
import { runToItsEnd } from "../run/to-end.ts";
import { connectQuietly } from "../service/connection.ts";
import { failedStepIn } from "./failed-result.ts";

/**
 * Prints the failure, unless `isReported`, and opens a shell in the place of the failed step, with all that its command had. Returns
 * the build's exit code after the shell exits; `undefined` if the build did not fail in a step that was run.
 */
export async function openShellAfter(
  error: unknown,
  invocation: Invocation,
  isReported: boolean,
): Promise<number | undefined> {
  const { runtime, globals, log } = invocation;
  const step = failedStepIn(error);
  if (step?.place === undefined || runtime.signal.aborted) return undefined;
  const { text } = describeFailure(error, globals.format);
  if (!isReported) runtime.stderr.write(formatLogLines(text, runtime.stderr));
  log.info("opening a shell in place of the failed step; its changes are thrown away when you leave");
  await using connection = await connectQuietly(invocation);
  await runToItsEnd(
    {
      key: sessionKey(invocation),
      place: { kind: "step", step: failedStepOf(step, step.place) },
      command: "shell",
      env: {},
      cwd: undefined,
      user: undefined,
      ignoresConfig: false,
      limits: undefined,
      files: [],
      excludes: [],
      volumes: [],
      input: undefined,
      network: "default",
      hosts: [],
      timeout: undefined,
      hostname: undefined,
      isDisposable: true,
      hasTerminal: true,
    },
    invocation,
    connection,
  );
  return failureOf(error).exitCode;
}
