import type { TerminalSize } from "../../service/wire/instance.ts";
import { mainProcessSpid } from "../../service/wire/operation.ts";
import { refuse } from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import type { EventData } from "../records/event-files.ts";
import { type InputSpec, ProcessInput } from "../sandbox/process-input.ts";
import type { ResolveAccount } from "../sandbox/root/accounts.ts";
import { resolveWorkingDirectory } from "../sandbox/root/root-path.ts";
import type { SandboxProcess } from "../sandbox/sandbox-process.ts";
import type { LiveSandbox, SandboxHost } from "../sandbox/sandbox-request.ts";
import { mountableViews } from "../system/user-namespace.ts";
import { type CommandTerminal, openCommandTerminal } from "../terminal/pseudo-terminal.ts";
import { type ExecProcess, notifyResize, signalCommand, startInSandbox } from "./exec.ts";
import { argvOf, type ExecSpec, signalOf } from "./exec-spec.ts";
import { ProcessEvents } from "./process-events.ts";

/** The maximum number of processes beside the main one. */
const maxProcesses = 32;
/** The time to wait for a sandbox that is still being set up. */
const maxWaitMilliseconds = 10_000;
/** The time to wait for killed processes: they are gone within a few milliseconds, unless they wait for the disk. */
const maxEndMilliseconds = 5_000;

/** A process beside the main one. */
interface RunningProcess extends Pick<ExecProcess, "input" | "signal" | "end"> {
  recorded: Promise<void>;
}

type AppendEvent = (spid: number, type: string, data: EventData) => void;

/** The processes of one instance, from its start to its end: the main one, and those started beside it. */
export class InstanceProcesses {
  readonly #host: SandboxHost;
  readonly #append: AppendEvent;
  readonly #started = Promise.withResolvers<LiveSandbox | undefined>();
  readonly #running = new Map<number, RunningProcess>();
  readonly #starting = new Set<Promise<number>>();
  #nextSpid = mainProcessSpid + 1;
  #hasEnded = false;
  #mainEvents: ProcessEvents | undefined;
  /** Set before the command starts. */
  accounts: ResolveAccount | undefined;
  readonly mainInput = new ProcessInput();
  /** The main process's terminal. */
  readonly terminal: CommandTerminal | undefined;

  constructor(host: SandboxHost, append: AppendEvent, terminal: TerminalSize | undefined) {
    this.#host = host;
    this.#append = append;
    this.terminal = terminal && openCommandTerminal(terminal);
  }

  started(live: LiveSandbox, events: ProcessEvents): void {
    this.#mainEvents = events;
    this.#started.resolve(live);
  }

  /** Kills all processes. Resolves when they are gone and recorded. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    this.#started.resolve(undefined);
    const over = new AbortController();
    const deadline = this.#host.clock.sleep(maxEndMilliseconds, over.signal).catch(() => {});
    while (this.#running.size + this.#starting.size > 0) {
      const running = [...this.#running.values()];
      for (const { end } of running) end();
      const gone = Promise.allSettled([...this.#starting, ...running.map(({ recorded }) => recorded)]);
      if ((await Promise.race([gone, deadline])) === undefined) break;
    }
    over.abort();
  }

  /** Starts a process and returns its `spid`. */
  async create(spec: ExecSpec): Promise<number> {
    const live = await this.requireStarted();
    // The runtime finds a sandbox by the PID of its command, which in a container's /proc is that of another process.
    if (!mountableViews().proc)
      throw new RequestError(
        501,
        "no process can be started beside a command where parts of /proc are hidden (in a container: start it with --security-opt systempaths=unconfined)",
      );
    if (this.#running.size + this.#starting.size >= maxProcesses) {
      throw new RequestError(
        429,
        `too many processes: ${maxProcesses} processes already run besides the main one`,
        {
          "Retry-After": "1",
        },
      );
    }
    const start = this.#start(live, spec, this.#nextSpid++);
    this.#starting.add(start);
    return start.finally(() => this.#starting.delete(start));
  }

  async write(spid: number, input: InputSpec): Promise<void> {
    await this.requireStarted();
    const process = spid === mainProcessSpid ? this.mainInput : this.#running.get(spid)?.input;
    if (process === undefined) throw hasEnded(spid);
    if (process.isClosed) throw new RequestError(409, `the standard input of process ${spid} is closed`);
    if (!process.write(input)) {
      throw new RequestError(429, `process ${spid} has not read its earlier input yet`, {
        "Retry-After": "1",
      });
    }
    // Key presses are not recorded.
    if (spid === mainProcessSpid && this.terminal !== undefined) return;
    if (spid === mainProcessSpid) this.#mainEvents?.received(input.bytes);
    else new ProcessEvents(0, (type, data) => this.#append(spid, type, data)).received(input.bytes);
  }

  async signal(spid: number, signal: number): Promise<void> {
    const live = await this.requireStarted();
    if (spid === mainProcessSpid) return signalCommand(this.#host, live, signal);
    const process = this.#running.get(spid);
    if (process === undefined) throw hasEnded(spid);
    process.signal(signal);
  }

  async resize(size: TerminalSize): Promise<void> {
    const live = await this.requireStarted();
    this.terminal?.resize(size);
    notifyResize(live);
  }

  /** Returns true if the process has been started here; it may have ended. */
  has(spid: number): boolean {
    return spid >= mainProcessSpid && spid < this.#nextSpid;
  }

  async #start(live: LiveSandbox, spec: ExecSpec, spid: number): Promise<number> {
    const events = new ProcessEvents(spec.truncateOutputAt, (type, data) => this.#append(spid, type, data));
    const process = this.#describe(live, spec);
    let pid = 0;
    const started = await startInSandbox(this.#host, live, {
      name: `process-${spid}`,
      process,
      stdin: spec.stdin,
      onStart: (number) => {
        pid = number;
        events.spawned(pid, { ...spec, timeoutSeconds: 0 }, process);
        events.received(spec.stdin.bytes);
      },
      onOutput: (stream, chunk) => events[stream].write(chunk),
    });
    if (started === undefined) throw instanceEnded();
    const recorded = started.ended
      .then(({ exitCode, elapsedSeconds, resources }) => {
        const signal = signalOf(exitCode);
        const end = { pid, exitCode: signal === -1 ? exitCode : -1, signal, timedOut: false };
        events.exited({ ...end, elapsedSeconds, resources });
      })
      // Events that can't be written, such as on a full disk, are missing. The process has ended anyway.
      .catch(() => {})
      .finally(() => this.#running.delete(spid));
    this.#running.set(spid, { ...started, recorded });
    return spid;
  }

  #describe(live: LiveSandbox, spec: ExecSpec): SandboxProcess {
    const main = live.process;
    const isSameUser = (spec.uid ?? main.uid) === main.uid && spec.gid === undefined;
    const account = isSameUser ? main : (this.accounts?.(spec.uid ?? main.uid, spec.gid) ?? main);
    const { uid, gid, additionalGids, home } = account;
    return {
      args: argvOf(spec),
      env: { ...main.env, ...spec.env },
      cwd: spec.cwd === undefined ? main.cwd : this.#resolveDirectory(live, spec.cwd),
      uid,
      gid,
      additionalGids,
      home,
    };
  }

  #resolveDirectory(live: LiveSandbox, path: string): string {
    const root = `/proc/${live.pid}/root${this.#host.layout.root}`;
    try {
      return resolveWorkingDirectory(root, path, live.locate);
    } catch (error) {
      return refuse("cwd", error instanceof Error ? `is not usable: ${error.message}` : String(error));
    }
  }

  /** Waits for the main process to start. Rejects if that takes too long, or if it has ended. */
  async requireStarted(): Promise<LiveSandbox> {
    const over = new AbortController();
    const tooLong = this.#host.clock.sleep(maxWaitMilliseconds, over.signal).then(
      () => "waiting" as const,
      () => "waiting" as const,
    );
    const live = await Promise.race([this.#started.promise, tooLong]);
    over.abort();
    if (live === "waiting") {
      throw new RequestError(425, "the instance is still being set up", { "Retry-After": "1" });
    }
    if (live === undefined || this.#hasEnded) throw instanceEnded();
    return live;
  }
}

function instanceEnded(): RequestError {
  return new RequestError(409, "the instance has already ended");
}

function hasEnded(spid: number): RequestError {
  return new RequestError(409, `process ${spid} has already ended`);
}
