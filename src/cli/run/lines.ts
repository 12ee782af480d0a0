/** Interactive commands on a service without terminals: input goes to the command line by line. */
import { BoughError } from "../../errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import { runInstance } from "./instance.ts";
import { createOutputRelay } from "./output-relay.ts";
import { type RunRequest, withInstance } from "./request.ts";
import { interruptShell, promptingShell, takeProcessId } from "./shell-process.ts";

/**
 * Sends typed lines to the command's standard input.
 *
 * @throws BoughError if the service does not support that
 */
export async function runByLines(
  asked: RunRequest,
  image: string,
  isShell: boolean,
  invocation: Invocation,
  connection: Connection,
): Promise<OperationOutcome> {
  const { log } = invocation;
  const { service } = connection;
  const request = {
    ...asked,
    hasTerminal: false,
    command: isShell && asked.command.form === "exec" ? promptingShell(asked.command) : asked.command,
  };
  const keys = isShell
    ? "Ctrl-C ends the running command, Ctrl-D the shell"
    : "Ctrl-D ends it, Ctrl-C cancels it";
  log.warn(`${service.address} does not support terminals: what you type is sent line by line, ${keys}`);
  const outcome = await withInstance(request, image, invocation, connection, (instance) =>
    typeTo(instance, isShell, invocation, connection),
  );
  if (outcome !== "unsupported") return outcome;
  throw new BoughError(`${service.address} does not support input to a running command`, {
    hint: isShell
      ? "Give commands to `bough run`, one at a time: it keeps what they change in the session."
      : "Pipe it in: bough run ... < FILE.",
  });
}

class NoInputError extends Error {
  override readonly name = "NoInputError";
}

async function typeTo(
  instance: InstanceRequest,
  isShell: boolean,
  { runtime, log }: Invocation,
  { service }: Connection,
): Promise<OperationOutcome | "unsupported"> {
  const { signal } = runtime;
  const { stdout, stderr } = runtime;
  const shell = takeProcessId(stderr.write);
  const relay = createOutputRelay(
    isShell ? { stdout, stderr: { ...stderr, write: shell.write } } : runtime,
    service,
    log,
  );
  const open: InstanceRequest = { ...instance, stdin: { value: "", encoding: "ascii", close: false } };
  let hasTyped = false;
  const attend = async (operation: string, ended: Promise<unknown>) => {
    const send = async (bytes: Uint8Array, close = false) => {
      const answer = await service.writeInput(operation, bytes, close);
      if (answer === "unsupported") throw new NoInputError();
      hasTyped ||= answer === "taken";
      return answer === "taken";
    };
    const type = async () => {
      if (!(await send(new Uint8Array()))) return;
      for await (const chunk of runtime.stdin.stream()) if (!(await send(chunk))) return;
      await send(new Uint8Array(), true);
    };
    const interrupt = async () => {
      const pid = shell.pid();
      return pid !== undefined && (await interruptShell(operation, pid, instance, service));
    };
    if (isShell) runtime.interrupts.add(interrupt);
    await Promise.race([type(), ended]).finally(() => runtime.interrupts.delete(interrupt));
  };
  const quiet = { ...log, warn: (message: string) => (signal.aborted ? log.warn : log.debug)(message) };
  try {
    const outcome = await runInstance(open, { service, signal, log: quiet }, relay, attend);
    // A shell that ends before it takes a line had no input: the service ignores that field of the request.
    if (isShell && !hasTyped) return "unsupported";
    await relay.finish(outcome);
    return outcome;
  } catch (error) {
    if (error instanceof NoInputError) return "unsupported";
    throw error;
  }
}
