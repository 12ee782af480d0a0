/** Connects the user's terminal to a command on a service. */
import { usageError } from "../../errors.ts";
import type { Message } from "../../messages/wording.ts";
import type { Service } from "../../service/client.ts";
import type { InstanceRequest, TerminalSize } from "../../service/wire/instance.ts";
import type { Runtime, View } from "../process/runtime.ts";

/** Throws, as docker does, unless input and output are terminals. `command`: the user's command, for the message. */
export function requireTerminal({ stdin, stdout }: Runtime, command: string, hint: Message): void {
  const missing = stdin.isTerminal ? "standard output" : "standard input";
  if (stdin.isTerminal && stdout.isTerminal) return;
  throw usageError(`${command} needs a terminal, but ${missing} is not one`, hint);
}

/** Returns the fields of a request for a terminal with the size of this one, and with standard input left open. */
export function terminalFields(
  runtime: Runtime,
  env: InstanceRequest["env"],
): Pick<InstanceRequest, "terminal" | "stdin" | "env"> {
  return {
    terminal: terminalSize(runtime),
    stdin: { bytes: new Uint8Array(), close: false },
    env: { TERM: terminalName(runtime.environment), ...env },
  };
}

function terminalSize({ stdout }: Runtime): TerminalSize {
  return { columns: stdout.columns, rows: stdout.rows };
}

/** Terminals that the terminal libraries in most images know. */
const widelyKnown = /^(xterm(-256color)?|screen(-256color)?|tmux(-256color)?|linux|vt100|vt220|rxvt)$/;

/** Returns the `TERM` for programs in the image. */
function terminalName(environment: Runtime["environment"]): string {
  const { TERM: own = "" } = environment;
  if (widelyKnown.test(own)) return own;
  return own.includes("256color") ? "xterm-256color" : "xterm";
}

/**
 * Forwards input and output byte for byte until the command ends. The command itself handles keys that interrupt or stop. The terminal is
 * always restored. Ends immediately if `ended` rejects.
 */
export async function connectTerminal(
  operation: string,
  ended: Promise<unknown>,
  { runtime, service }: { runtime: Runtime; service: Service },
): Promise<void> {
  const { stdin, stdout, signal, views } = runtime;
  const screen = await service.openTerminal(operation);
  if (screen === undefined) return;
  const shown = screen.getReader();
  let failure: unknown;
  const stop = (reason: unknown) => {
    failure ??= reason;
    shown.cancel().catch(() => {});
  };
  const onAbort = () => stop(signal.reason);
  const resize = () => void service.resizeTerminal(operation, terminalSize(runtime)).catch(stop);
  const view: View = {
    close: () => stdin.setRawMode(false),
    suspend: () => stdin.setRawMode(false),
    resume() {
      // The user's shell has changed the mode meanwhile, so raw mode must be set again, not only remembered.
      stdin.setRawMode(false);
      stdin.setRawMode(true);
    },
  };
  signal.addEventListener("abort", onAbort);
  views.add(view);
  stdin.setRawMode(true);
  const stopWatching = stdout.onResize(resize);
  // The size may have changed before the listener was added.
  resize();
  forwardInput(operation, service, stdin.stream()).catch(stop);
  ended.catch(stop);
  try {
    for (let part = await shown.read(); !part.done; part = await shown.read()) {
      stdout.write(part.value);
      await stdout.flush();
    }
    if (failure !== undefined) throw failure;
  } finally {
    signal.removeEventListener("abort", onAbort);
    stopWatching();
    view.close();
    views.delete(view);
    shown.cancel().catch(() => {});
  }
}

/** Forwards input, one request at a time, each with all input since the one before. */
async function forwardInput(
  operation: string,
  service: Pick<Service, "writeInput">,
  typed: AsyncIterable<Uint8Array>,
): Promise<void> {
  let waiting: Uint8Array[] = [];
  let isSending = false;
  const failed = Promise.withResolvers<void>();
  const send = async () => {
    isSending = true;
    while (waiting.length > 0) {
      const bytes = Buffer.concat(waiting);
      waiting = [];
      await service.writeInput(operation, bytes);
    }
    isSending = false;
  };
  const read = async () => {
    for await (const chunk of typed) {
      waiting.push(chunk);
      if (!isSending) send().catch(failed.reject);
    }
  };
  await Promise.race([read(), failed.promise]);
}
