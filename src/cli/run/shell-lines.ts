import { refuseMissing } from "../../service/operations/outcome.ts";
import type { OperationOutcome } from "../../service/service.ts";
import { visible } from "../../visible.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import { runInstance } from "./instance.ts";
import { createOutputRelay } from "./output-relay.ts";
import { type RunPlace, type RunRequest, withInstance } from "./request.ts";

/**
 * Runs a shell line by line, each as a command on the image that the one before has left. `cd` affects later lines, `exit` ends
 * the shell, Ctrl-C ends the running command. Returns the outcome of the last command, with the latest image.
 */
export async function runLines(
  request: RunRequest,
  image: string,
  lines: AsyncIterable<string>,
  invocation: Invocation,
  connection: Connection,
): Promise<OperationOutcome> {
  const { stderr, interrupts } = invocation.runtime;
  let outcome: OperationOutcome = { ...nothingRun, image };
  let next = { ...request, isDisposable: false };
  const prompt = () => stderr.write(`${visible(next.cwd ?? "")}$ `);
  /** The operation of the running line, once it has started. */
  let started: PromiseWithResolvers<string | undefined> | undefined;
  const interrupt = async () => {
    stderr.write("\n");
    if (started === undefined) prompt();
    const operation = await started?.promise;
    return operation === undefined || (await connection.service.cancel(operation));
  };
  const perform = async (line: string) => {
    const isMove = /^cd(\s+[^\s;&|]+)?$/.test(line);
    const command = { form: "shell", line: isMove ? `${line} && pwd` : line } as const;
    const own = Promise.withResolvers<string | undefined>();
    started = own;
    const at = { image: outcome.image ?? image, isSilent: isMove, onStart: own.resolve };
    const ended = await runLine({ ...next, command }, at, invocation, connection).finally(() => {
      own.resolve(undefined);
      started = undefined;
    });
    if (isMove && ended.exitCode === 0) next.cwd = ended.stdout.text.trim();
    outcome = { ...ended, image: ended.image ?? outcome.image };
    // Files that were placed first are in the image now.
    next = { ...next, files: [], place: withoutFiles(next.place) };
  };
  interrupts.add(interrupt);
  try {
    prompt();
    for await (const typed of lines) {
      const line = typed.trim();
      const [, code] = /^exit(?:\s+(\d{1,3}))?$/.exec(line) ?? [];
      if (code !== undefined) return { ...outcome, exitCode: Number(code) };
      if (line !== "" && line !== "exit") await perform(line);
      if (/^exit(\s|$)/.test(line)) return outcome;
      prompt();
    }
    stderr.write("\n");
    return outcome;
  } finally {
    interrupts.delete(interrupt);
  }
}

const nothingRun = {
  operation: "",
  status: "SUCCESS",
  error: undefined,
  exitCode: 0,
  timedOut: false,
  limitsHit: [],
  stdout: { text: "", truncated: false },
  stderr: { text: "", truncated: false },
} as const;

function withoutFiles(place: RunPlace): RunPlace {
  if (place.kind !== "step") return place;
  const { files: _, entries: __, copies: ___, ...fields } = place.step.fields;
  return { ...place, step: { ...place.step, fields } };
}

interface LinePlace {
  image: string;
  /** True if its output is only for bough. */
  isSilent: boolean;
  onStart: (operation: string) => void;
}

async function runLine(
  request: RunRequest,
  { image, isSilent, onStart }: LinePlace,
  invocation: Invocation,
  connection: Connection,
): Promise<OperationOutcome> {
  const { runtime, log } = invocation;
  const { service } = connection;
  const relay = createOutputRelay(runtime, service, log);
  const outcome = await withInstance(request, image, invocation, connection, async (instance) => {
    const options = { service, signal: runtime.signal, log, onStart };
    const ended = await runInstance(instance, options, isSilent ? undefined : relay);
    refuseMissing(ended);
    return ended;
  });
  if (!isSilent) await relay.finish(outcome);
  else if (outcome.exitCode !== 0) runtime.stderr.write(outcome.stderr.text);
  // Cancelled by Ctrl-C, or by another `bough kill`: the shell goes on as after an interrupted command.
  if (outcome.status === "CANCELLED")
    return { ...outcome, status: "SUCCESS", error: undefined, exitCode: interruptedExitCode };
  if (outcome.status !== "SUCCESS" || outcome.timedOut)
    log.error(outcome.error ?? `the command was stopped (operation ${outcome.operation})`);
  return outcome;
}

/** A shell's exit code for a command ended by SIGINT. */
const interruptedExitCode = 130;
