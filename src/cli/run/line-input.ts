/** Runs interactive commands on a service without terminals: input is sent line by line. */
import type { ExpandedCommand } from "../../builder/commands/command.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { quote } from "../../programs/quote.ts";
import type { Service } from "../../service/client.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import { createOutputRelay, runInstance } from "./instance.ts";
import { type RunRequest, withInstance } from "./request.ts";

/**
 * Sends typed lines to the command's standard input.
 *
 * @throws BoughError if the service does not support that
 */
export async function runWithLineInput(
  asked: RunRequest,
  image: string,
  isShell: boolean,
  invocation: Surroundings,
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
    runWithTypedLines(instance, isShell, invocation, connection),
  );
  if (outcome !== "unsupported") return outcome;
  throw new BoughError(`${service.address} does not support input to a running command`, {
    hint: isShell
      ? wording`Give commands to ${{ command: "run" }}, one at a time: it keeps what they change in the session.`
      : wording`Pipe it in: ${{ command: "run", words: ["..."], isLine: true }} < FILE.`,
  });
}

class NoInputError extends Error {
  override readonly name = "NoInputError";
}

async function runWithTypedLines(
  instance: InstanceRequest,
  isShell: boolean,
  { runtime, log }: Surroundings,
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
  const open: InstanceRequest = { ...instance, stdin: { bytes: new Uint8Array(), close: false } };
  let hasTyped = false;
  const whileRunning = async (operation: string, ended: Promise<unknown>) => {
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
    const outcome = await runInstance(open, { service, signal, log: quiet }, relay, whileRunning);
    // A shell that ends before it has read a line had no input, since the service ignored that field of the request.
    if (isShell && !hasTyped) return "unsupported";
    await relay.finish(outcome);
    return outcome;
  } catch (error) {
    if (error instanceof NoInputError) return "unsupported";
    throw error;
  }
}

/**
 * Returns the command of a shell that first prints its process id, between characters that no shell prints first, so that Ctrl-C can
 * interrupt what it runs. `-i` makes it prompt without a terminal.
 */
function promptingShell({ words }: Extract<ExpandedCommand, { form: "exec" }>): ExpandedCommand {
  const [program = "sh"] = words;
  const shell = words.map(quote).join(" ");
  return { form: "exec", words: [program, "-c", `printf '\\001%s\\002' $$ >&2; exec ${shell} -i`] };
}

const processNumber = /^\u0001(\d+)\u0002/;
const begun = /^\u0001?\d*$/;

/** Extracts the process id from the beginning of the shell's output, and forwards the rest. */
function takeProcessId(write: (data: string | Uint8Array) => void) {
  let pid: number | undefined;
  let held: string | undefined = "";
  return {
    /** `undefined` until the shell has printed it. */
    pid: () => pid,
    write(data: string | Uint8Array): void {
      if (held === undefined) {
        write(data);
        return;
      }
      // Latin-1 maps each byte to a character, so that the output after the id is kept unchanged.
      held += Buffer.from(data).toString("latin1");
      const found = processNumber.exec(held);
      if (found === null && begun.test(held) && held.length < 32) return;
      pid = found === null ? undefined : Number(found[1]);
      const rest = Buffer.from(held.slice(found?.[0].length ?? 0), "latin1");
      held = undefined;
      if (rest.length > 0) write(rest);
    },
  };
}

/**
 * Interrupts what the shell with process id `$1` runs in the foreground: the processes of its process group that don't ignore SIGINT, as
 * background jobs do. Interrupts the shell itself only if there are none, or if it continues with other commands: some shells take the
 * exit of a child that they don't wait for as the end of their input. For the same reason the youngest process comes first.
 */
const interruptScript = `
look() {
  pid= state= group= ignored=
  while read -r name value rest; do
    case $name in
      State:) state=$value ;;
      Pid:) pid=$value ;;
      NSpgid:) group="$value $rest" ;;
      SigIgn:) ignored=$value; break ;;
    esac
  done < "$1"
}
foreground() {
  found=
  for status in /proc/[0-9]*/status; do
    look "$status"
    [ "$group" = "$own" ] && [ "$state" != Z ] && [ "$pid" != $$ ] && [ "$pid" != "$shell" ] || continue
    case $ignored in *[2367abef]) ;; *) found="$pid $found" ;; esac
  done
}
exec 2> /dev/null
shell=$1
look "/proc/$shell/status"
own=$group
foreground
[ "$found" ] || { kill -INT "$shell"; exit; }
kill -INT $found
begun=" $found "
for pass in 1 2 3 4 5 6 7 8; do
  foreground
  for pid in $found; do
    case $begun in *" $pid "*) ;; *) kill -INT "$shell" $found; exit ;; esac
  done
done
`;

/** Interrupts the foreground of a shell. Returns false if the service can't start a process beside the command. */
function interruptShell(
  operation: string,
  pid: number,
  { uid, gid }: Pick<InstanceRequest, "uid" | "gid">,
  service: Pick<Service, "startProcess">,
): Promise<boolean> {
  const user = { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) };
  const args = ["-c", interruptScript, "sh", String(pid)];
  return service.startProcess(operation, { command: "sh", args, shell: false, ...user });
}
