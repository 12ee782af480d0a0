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
  const complaints = new ComplaintFilter();
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
  const noted = async () => {
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
        await noted();
        await output("stdout", chunk);
      }),
      forEachChunk(helper.stderr, (chunk) => writeStderr(complaints.pass(chunk, { isKilled: kill.used }))),
      helper.exited,
    ]);
    // crun counts for the memory limit as well: the kernel kills it if the command has no other process left to kill.
    const wasLost =
      !kill.used && complaints.wasMade && guard.hits().some(({ limit }) => limit === "max_memory_bytes");
    wasKilled = kill.used || wasLost || (complaints.wasMade && request.isCancelled());
    writeStderr(wasKilled ? complaints.end() : complaints.held);
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

/** Milliseconds between two checks: runc takes less than a second, unless the machine is short of something. */
const [soon, later] = [8, 250];

/** Notices the start of a command that prints nothing for a long time. */
async function noticeStart(clock: Clock, ended: AbortSignal, hasStarted: () => boolean): Promise<void> {
  for (let waited = 0; !ended.aborted && !hasStarted(); ) {
    const wait = waited < 1000 ? soon : later;
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
const complaint = Buffer.from("unshare: sigprocmask unblock failed: Invalid argument\n");

/** The complaint arrives in up to three pieces. This is the length of the first. */
const firstPiece = "unshare: ".length;

/** Removes unshare's complaint from the end of a killed command's standard error. */
export class ComplaintFilter {
  /** The bytes so far that may be the complaint. */
  held: Uint8Array = Buffer.alloc(0);

  /**
   * Returns what can be passed on now: everything but an end that may be the beginning of the complaint. Another process may kill
   * a command that is not known to be killed; of its output, only ends at least as long as the first piece are held back.
   */
  pass(chunk: Uint8Array, { isKilled }: { isKilled: boolean }): Uint8Array {
    const all = Buffer.concat([this.held, chunk]);
    const start = complaintStart(all, isKilled ? 1 : firstPiece);
    this.held = all.subarray(start);
    return all.subarray(0, start);
  }

  /** True if the complaint was the last output. */
  get wasMade(): boolean {
    return complaint.equals(this.held);
  }

  /** Returns what was held back and is not the complaint. */
  end(): Uint8Array {
    return this.wasMade ? Buffer.alloc(0) : this.held;
  }
}

/** Returns where an end of `bytes`, of at least `fewest`, matches the complaint's beginning; their length if none does. */
function complaintStart(bytes: Buffer, fewest: number): number {
  for (let start = Math.max(0, bytes.length - complaint.length); start <= bytes.length - fewest; start++) {
    if (complaint.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return start;
  }
  return bytes.length;
}

/** The limit in bytes. A runtime's error is one line; output that continues past that is a command's. */
const maxHeld = 64 * 1024;

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
    if (this.#hasStarted() || this.#held.length > maxHeld) this.#release();
  }

  /**
   * Call it when the runtime has ended; `log`: the path of its log. Returns the runtime's error if it could not start the command,
   * else delivers held output.
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
