import { recordConfiguration, recordedConfiguration } from "../../builder/cache/image-records.ts";
import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import {
  describeLimitHits,
  refuseMissing,
  reportsDiskFull,
  StoppedCommandError,
} from "../../service/operations/outcome.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { NewEntry } from "../../store/sessions.ts";
import type { Surroundings } from "../command-line/command.ts";
import { commandLine, type GlobalOptions } from "../command-line/globals.ts";
import { printResult } from "../command-line/result.ts";
import { appendEntries, type WorkingBranch, workingBranch } from "../references/working-branch.ts";
import { isEmbedded } from "../service/choice.ts";
import type { Connection } from "../service/connection.ts";
import { roomHint, withRoomHint } from "../service/make-room.ts";
import { type ResolvedRun, type UnresolvedRun, withCommand, withSessionState } from "./image-command.ts";
import { createOutputRelay, requireExitCode, runInstance } from "./instance.ts";
import { type RunRequest, resolveStartImage, sourceStep, withInstance } from "./request.ts";
import { connectTerminal } from "./terminal.ts";

/** A command that has run to its end. */
interface CompletedRun {
  exitCode: number;
  outcome: OperationOutcome;
  /** The session's new image; `undefined` if the changes were thrown away. */
  kept: { session: string; branch: string; image: string } | undefined;
}

/** Runs the command, prints its result for programs, and returns its exit code. */
export async function runToEnd(
  asked: UnresolvedRun,
  invocation: Surroundings,
  connection: Connection,
): Promise<number> {
  const isJson = invocation.globals.format === "json";
  const print = (ended: Parameters<typeof describeRun>[0]) => {
    const json = describeRun(ended);
    if (isJson) printResult(invocation, { id: json.operation, json, table: () => "" });
  };
  try {
    const ended = await performRun(asked, invocation, connection);
    print(ended);
    return ended.exitCode;
  } catch (error) {
    // Programs also get the output of a command that was stopped.
    if (error instanceof StoppedCommandError)
      print({ outcome: error.outcome, exitCode: null, kept: undefined });
    throw error;
  }
}

/** Runs the command. Its output goes to the invocation's streams, unless the format is JSON. */
export async function performRun(
  asked: UnresolvedRun,
  invocation: Surroundings,
  connection: Connection,
): Promise<CompletedRun> {
  const { runtime, globals } = invocation;
  try {
    return await runAsked(asked, invocation, connection);
  } catch (error) {
    // The disk of a remote service is not this machine's.
    if (runtime.signal.aborted || !isEmbedded(runtime, globals)) throw error;
    throw withRoomHint(error, runtime, "What the command wrote was removed");
  }
}

async function runAsked(
  given: UnresolvedRun,
  invocation: Surroundings,
  connection: Connection,
): Promise<CompletedRun> {
  const { runtime, globals, log } = invocation;
  const { store } = connection;
  const asked = withSessionState(given, store);
  const from = startBranch(asked, store);
  const image = await resolveStartImage(asked, invocation, connection);
  const request = await withCommand(asked, image, invocation, connection);
  const outcome = await runOnce(asked, request, image, invocation, connection);
  const exitCode = requireExitCode(outcome, request.timeoutSeconds);
  const hint = describeLimitHits(outcome.limitsHit);
  if (hint !== undefined) log.warn(hint);
  // If the result is lost, the session does not change.
  if (!request.isDisposable && outcome.image !== undefined) await connection.requireKept(outcome.image);
  const kept = request.isDisposable
    ? undefined
    : keepResult(request, image, outcome, from, invocation, connection);
  if (exitCode !== 0 && !asked.hasTerminal && reportsDiskFull(outcome) && isEmbedded(runtime, globals))
    log.warn(roomHint(runtime, describeWritten(request, kept?.image !== image, globals)));
  return { exitCode, outcome, kept: kept && { session: request.key, ...kept } };
}

/** Returns the result of a run for programs. `exitCode`: null if the command was stopped. */
export function describeRun({
  outcome: { operation, stdout, stderr },
  exitCode,
  kept,
}: Omit<CompletedRun, "exitCode"> & { exitCode: number | null }) {
  return {
    operation,
    exitCode,
    image: kept?.image ?? null,
    session: kept?.session ?? null,
    branch: kept?.branch ?? null,
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: stdout.truncated || stderr.truncated,
  };
}

/** Returns a sentence about whether the files that the command wrote still take up space. */
function describeWritten(
  { isDisposable, key }: RunRequest,
  hasChanged: boolean,
  globals: GlobalOptions,
): string {
  if (isDisposable || !hasChanged) return "What the command wrote was removed";
  const back = commandLine(globals, ["-S", key, "session", "rollback"]);
  return `What the command wrote is in the session's image: after \`${back}\` it can be removed as well`;
}

async function runOnce(
  asked: ResolvedRun,
  request: RunRequest,
  image: string,
  invocation: Surroundings,
  connection: Connection,
): Promise<OperationOutcome> {
  const { runtime, globals, log } = invocation;
  const { service } = connection;
  const { hasTerminal, command } = asked;
  const takesInput = (await service.capabilities.extensions()).has("terminals");
  if (hasTerminal && !takesInput) {
    const { runWithLineInput: runByLines } = await import("./line-input.ts");
    return await runByLines(request, image, command === "shell", invocation, connection);
  }
  const relay =
    globals.format === "json" || hasTerminal ? undefined : createOutputRelay(runtime, service, log);
  const attendTo = (laterInput: AsyncIterable<Uint8Array> | undefined) => {
    if (laterInput === undefined && !hasTerminal) return undefined;
    return (operation: string, ended: Promise<unknown>) =>
      laterInput === undefined
        ? connectTerminal(operation, ended, { runtime, service })
        : forwardInput(operation, ended, laterInput, service);
  };
  const { signal } = runtime;
  // Warnings about the interruption are only useful to users who have not pressed Ctrl-C themselves.
  const warn = (message: string) =>
    (signal.aborted && runtime.stderr.isTerminal ? log.debug : log.warn)(message);
  const perform = async (instance: InstanceRequest, laterInput?: AsyncIterable<Uint8Array>) => {
    const options = { service, signal, log: { ...log, warn } };
    const ended = await runInstance(instance, options, relay, attendTo(laterInput));
    refuseMissing(ended);
    return ended;
  };
  const takesLaterInput = takesInput && !hasTerminal;
  const outcome = await withInstance(request, image, invocation, connection, perform, { takesLaterInput });
  await relay?.finish(outcome);
  return outcome;
}

/** Forwards piped input until it or the command ends. */
async function forwardInput(
  operation: string,
  ended: Promise<unknown>,
  input: AsyncIterable<Uint8Array>,
  service: Service,
): Promise<void> {
  const pass = async () => {
    for await (const chunk of input) if ((await service.writeInput(operation, chunk)) !== "taken") return;
    await service.writeInput(operation, new Uint8Array(), true);
  };
  await Promise.race([pass(), ended]);
}

/** Returns the branch to continue: in the place of a failed step, that of the layer that the step started from. */
function startBranch({ key, source }: ResolvedRun, store: Connection["store"]): WorkingBranch {
  const step = sourceStep(source);
  if (step === undefined) return workingBranch(store, key);
  return { key, branch: step.branch, head: store.sessions.findBranch(key, step.branch) };
}

/** Makes the result the session's image, whatever the exit code. `session rollback` undoes that. */
function keepResult(
  request: RunRequest,
  image: string,
  outcome: OperationOutcome,
  from: WorkingBranch,
  { globals, log }: Surroundings,
  { store }: Connection,
): { image: string; branch: string } {
  if (outcome.image === undefined) {
    throw new BoughError(
      `operation ${outcome.operation} succeeded, but the service reported no resulting image`,
    );
  }
  const { source, key, title } = request;
  const result = outcome.image;
  const entries: Omit<NewEntry, "parent">[] = [
    ...(source.kind === "image"
      ? [{ image, kind: "use" as const, title: `use ${source.image}`, operation: null }]
      : []),
    ...(result === image
      ? []
      : [{ image: result, kind: "run" as const, title, operation: outcome.operation }]),
  ];
  if (entries.length === 0) {
    log.info(`nothing has changed in image ${image}`);
    return { image, branch: from.branch };
  }
  const noted = result === image ? undefined : recordedConfiguration(image, store);
  if (noted !== undefined) recordConfiguration(result, noted, store);
  const { branch, isNew, hasMoved } = appendEntries(store, from, entries);
  if (isNew)
    log.info(`${from.branch} is a build's layer and stays unchanged: the result is on branch ${branch}`);
  if (hasMoved)
    log.warn(
      `another command has moved branch ${branch} in the meantime: see \`${commandLine(globals, ["-S", key, "session", "show"])}\``,
    );
  log.info(`session ${key}, branch ${branch}: image ${result}`);
  return { image: result, branch };
}
