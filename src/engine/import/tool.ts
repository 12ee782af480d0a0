import { BoughError } from "../../errors.ts";
import { endHelper, sendLine, startHelper } from "../../programs/helper.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { readLines } from "../../streams.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { recordHelper } from "../system/helper-process.ts";
import { findProgram, helperEnvironment, killedWithParent } from "../system/programs.ts";

/** A shell script that waits until its process ID is recorded. If bough is killed before that, the tool does not start. */
const script = `read -r go && exec "$@"`;

/**
 * Runs skopeo in the operation's directory. If it fails, rejects with its last error message. `guard` has variables for its environment,
 * and the open file of its network namespace.
 */
export async function runSkopeo(
  state: EngineState,
  run: OperationRun,
  args: readonly string[],
  signal: AbortSignal,
  guard?: { environment: Readonly<Record<string, string>>; namespace: number },
): Promise<void> {
  signal.throwIfAborted();
  const path = findProgram("skopeo", state.environment);
  const enter =
    guard === undefined ? [] : [findProgram("nsenter", state.environment), "--net=/proc/self/fd/3"];
  const command = [...enter, findProgram("sh", state.environment), "-c", script, "sh", path, ...args];
  const tool = startHelper(killedWithParent(command, state.environment), {
    workingDirectory: run.directory,
    environment: {
      HOME: run.directory,
      // Otherwise skopeo reads the credentials of user ID 0, which in a user namespace belong to another user.
      ...(state.inUserNamespace ? { XDG_RUNTIME_DIR: run.directory } : {}),
      ...helperEnvironment(state.environment),
      // Large temporary files belong on the engine's disk, not in a small /tmp.
      TMPDIR: run.directory,
      ...guard?.environment,
    },
    descriptors: [guard?.namespace],
  });
  recordHelper(run.directory, tool.pid);
  const kill = () => endHelper(tool);
  signal.addEventListener("abort", kill, { once: true });
  try {
    await sendLine(tool);
    await tool.stdin.end();
    const [, errorOutput, status] = await Promise.all([
      reportProgress(state, run, tool.stdout),
      new Response(tool.stderr).text(),
      tool.exited,
    ]);
    signal.throwIfAborted();
    if (status !== 0)
      throw new BoughError(
        `skopeo: ${lastErrorMessage(errorOutput).replace(redundantPrefix, "") || `exited with code ${status}`}`,
      );
  } finally {
    signal.removeEventListener("abort", kill);
    // skopeo still runs if its progress could not be recorded.
    endHelper(tool);
    await tool.exited;
  }
}

async function reportProgress(
  state: EngineState,
  run: OperationRun,
  output: ReadableStream<Uint8Array>,
): Promise<void> {
  for await (const line of readLines(output)) {
    const message = line.trim();
    if (message !== "") state.events.append(run.uuid, sandboxSpid, "progress", { message });
  }
}

/** The beginning of skopeo's message that repeats what is imported: bough has said that, and an address follows. */
const redundantPrefix = /^initializing source \S+: (pinging container registry \S+: (?=Get "))?/;

/** Returns the message of skopeo's last log line: `time="..." level=fatal msg="..."`. */
export function lastErrorMessage(errorOutput: string): string {
  const last = errorOutput.trim().split("\n").at(-1) ?? "";
  const message = /msg="((?:[^"\\]|\\.)*)"/.exec(last)?.[1];
  return message === undefined
    ? last
    : message.replaceAll('\\"', '"').replaceAll("\\n", " ").replaceAll("\\\\", "\\");
}
