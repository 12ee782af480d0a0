import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, steadyTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { isRunning } from "../../programs/helper.ts";
import { firstProcess, readPid } from "./containers.ts";
import type { KillSwitch } from "./kill-switch.ts";
import type { LimitGuard } from "./limits/guard.ts";
import { eventResources } from "./limits/usage.ts";
import type { MountNamespace } from "./root/mount-namespace.ts";
import type { SandboxHost, SandboxOutcome, SandboxRequest } from "./sandbox-request.ts";

/** Starts the prepared command and waits for its end. Calls `onStart` when it runs. */
export async function supervise(
  host: SandboxHost,
  request: SandboxRequest,
  sandbox: { namespace: MountNamespace; kill: KillSwitch; guard: LimitGuard },
  onStart: (pid: number) => void,
): Promise<SandboxOutcome> {
  const { clock, layout } = host;
  const { namespace, kill, guard } = sandbox;
  const helper = namespace.process;
  // runc's state has the PID before the PID file does.
  const hasStarted = () => {
    return (firstProcess(layout, request.id) ?? readPid(join(request.directory, "pid"))) !== undefined;
  };
  const stderr = new StartupStderr(hasStarted, (chunk) => output("stderr", chunk));
  const killMessages = new KillMessageFilter();
  const writeStderr = (chunk: Uint8Array) => {
    if (chunk.length > 0) stderr.write(chunk);
  };
  let pid: number | undefined;
  const started = () => {
    if (pid !== undefined) return;
    if (!hasStarted()) return;
    // The command's own PID is only valid in the sandbox. Killing the helper kills everything in the sandbox.
    pid = helper.pid;
    onStart(pid);
    stderr.review();
  };
  const output = (stream: "stdout" | "stderr", chunk: Uint8Array) => {
    started();
    return request.onOutput(stream, chunk);
  };

  /** Waits until crun has written the PID file, which it does while the command already runs. */
  const untilStarted = async () => {
    while (pid === undefined && !hasStarted() && isRunning(helper)) await clock.sleep(1);
  };

  request.signal.throwIfAborted();
  const startedAt = steadyTime(clock);
  const ended = new AbortController();
  const timeout = clock.sleep(request.timeoutSeconds * 1000, ended.signal).then(
    () => kill.timeOut(),
    () => {},
  );
  const notice = noticeStart(clock, ended.signal, () => {
    started();
    return pid !== undefined;
  });
  let wasKilled = false;
  const watch = guard.watch(helper.pid, kill, ended.signal);
  const beside = Promise.all([timeout, notice, watch]);
  // Its error is thrown when the command has ended. Until then, an error without a handler would end this process.
  beside.catch(() => undefined);
  try {
    await namespace.proceed();
    await Promise.all([
      request.input.connect(helper.stdin, request.stdin),
      forEachChunk(namespace.stdout, async (chunk) => {
        await untilStarted();
        await output("stdout", chunk);
      }),
      forEachChunk(helper.stderr, (chunk) => writeStderr(killMessages.pass(chunk, { isKilled: kill.used }))),
      helper.exited,
    ]);
    // crun counts for the memory limit as well: the kernel kills it if the command has no other process left to kill.
    const wasLost =
      !kill.used && killMessages.isComplete && guard.hits().some(({ limit }) => limit === "max_memory_bytes");
    wasKilled = kill.used || wasLost || (killMessages.isComplete && request.isCancelled());
    writeStderr(wasKilled ? killMessages.end() : killMessages.held);
  } finally {
    ended.abort();
    await beside;
  }
  const failure = stderr.end(join(request.directory, "log"));
  if (failure !== undefined && !kill.used) {
    const cause = request.runtime.likelyProblem();
    const reason = cause === undefined ? failure : `${failure}; ${cause}`;
    throw new BoughError(`the sandbox could not be started: ${reason}`);
  }
  started();
  return {
    pid: pid ?? 0,
    exitCode: wasKilled ? 137 : await helper.exited,
    timedOut: kill.timedOut,
    elapsedSeconds: (steadyTime(clock) - startedAt) / 1000,
    limitsHit: guard.hits(),
    resources: eventResources(helper.resourceUsage()),
  };
}

/** The time between two checks, at first and later: runc takes less than a second, unless the machine lacks resources. */
const [firstMilliseconds, laterMilliseconds] = [8, 250];

/** Notices the start of a command that prints nothing for a long time. */
async function noticeStart(clock: Clock, ended: AbortSignal, hasStarted: () => boolean): Promise<void> {
  for (let waited = 0; !ended.aborted && !hasStarted(); ) {
    const wait = waited < 1000 ? firstMilliseconds : laterMilliseconds;
    await clock.sleep(wait, ended).catch(() => {});
    waited += wait;
  }
}

export async function forEachChunk(
  chunks: AsyncIterable<Uint8Array>,
  use: (chunk: Uint8Array) => Promise<void> | void,
): Promise<void> {
  for await (const chunk of chunks) await use(chunk);
}

/** The message that unshare of util-linux 2.38 prints when its child is killed. It is not the command's output. */
const killMessage = Buffer.from("unshare: sigprocmask unblock failed: Invalid argument\n");

/** The length of the message's first piece: it arrives in up to three. */
const firstPieceBytes = "unshare: ".length;

/** Removes unshare's message from the end of a killed command's standard error. */
export class KillMessageFilter {
  /** The bytes so far that may be the message. */
  held: Uint8Array = Buffer.alloc(0);

  /**
   * Returns what can be passed on now: everything but an end that may be the beginning of the message. Another process may kill
   * a command that is not known to be killed; of its output, only ends at least as long as the first piece are held back.
   */
  pass(chunk: Uint8Array, { isKilled }: { isKilled: boolean }): Uint8Array {
    const all = Buffer.concat([this.held, chunk]);
    const start = killMessageStart(all, isKilled ? 1 : firstPieceBytes);
    this.held = all.subarray(start);
    return all.subarray(0, start);
  }

  /** True if the message was the last output. */
  get isComplete(): boolean {
    return killMessage.equals(this.held);
  }

  /** Returns the bytes that were held back, unless they are the message. */
  end(): Uint8Array {
    return this.isComplete ? Buffer.alloc(0) : this.held;
  }
}

/** Returns the position from which the end of `bytes`, at least `min` of them, matches the message's beginning; their length if none does. */
function killMessageStart(bytes: Buffer, min: number): number {
  for (let start = Math.max(0, bytes.length - killMessage.length); start <= bytes.length - min; start++) {
    if (killMessage.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return start;
  }
  return bytes.length;
}

/** A runtime's error is one line: longer output is the command's. */
const maxHeldBytes = 64 * 1024;

/**
 * Standard error of a sandbox. The runtime writes to it as well when it can't start the command: what comes before the command has
 * started is held back until the runtime's log shows whether it failed.
 */
export class StartupStderr {
  readonly #deliver: (chunk: Uint8Array) => void;
  readonly #hasStarted: () => boolean;
  #held: Buffer | undefined = Buffer.alloc(0);

  constructor(hasStarted: () => boolean, deliver: (chunk: Uint8Array) => void) {
    this.#hasStarted = hasStarted;
    this.#deliver = deliver;
  }

  write(chunk: Uint8Array): void {
    if (this.#held === undefined) {
      this.#deliver(chunk);
      return;
    }
    this.#held = Buffer.concat([this.#held, chunk]);
    this.review();
  }

  /** Delivers held output that proves to be the command's own. Call it as well when the command has started. */
  review(): void {
    if (this.#held === undefined || this.#held.length === 0) return;
    if (this.#hasStarted() || this.#held.length > maxHeldBytes) this.#release();
  }

  /**
   * Call it when the runtime has ended, with the path of its log. Returns the runtime's error if it could not start the command;
   * otherwise delivers held output.
   */
  end(log: string): string | undefined {
    const error = lastError(log);
    if (error === undefined) this.#release();
    return error;
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.length > 0) this.#deliver(held);
  }
}

/** Returns the last error of a log with one JSON object per line. */
function lastError(log: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(log, "utf8");
  } catch {
    return undefined;
  }
  return text
    .split("\n")
    .flatMap((line) => errorOf(line) ?? [])
    .at(-1);
}

function errorOf(line: string): string | undefined {
  try {
    const entry = JSON.parse(line) as { level?: unknown; msg?: unknown };
    return entry.level === "error" && typeof entry.msg === "string" ? entry.msg : undefined;
  } catch {
    return undefined;
  }
}
