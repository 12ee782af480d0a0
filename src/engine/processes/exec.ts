import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { steadyTime } from "../../clock.ts";
import { beforeDeadline, endHelper, isRunning, sendSignal } from "../../programs/helper.ts";
import { errorCode } from "../../system-error.ts";
import { checkCommand, type RefusedCommand } from "../sandbox/command-check.ts";
import { firstProcess, readPid } from "../sandbox/containers.ts";
import { type EventResources, eventResources } from "../sandbox/limits/usage.ts";
import { type InputSpec, ProcessInput } from "../sandbox/process-input.ts";
import type { SandboxProcess } from "../sandbox/sandbox-process.ts";
import type { LiveSandbox, SandboxHost } from "../sandbox/sandbox-request.ts";
import { forEachChunk, StartupStderr } from "../sandbox/supervise.ts";
import { findDescendant, findFirstInNamespace } from "../system/helper-process.ts";
import { findProgram, helperEnvironment, killedWithParent } from "../system/programs.ts";

interface ExecRequest {
  /** The process's unique name in the sandbox. */
  name: string;
  process: SandboxProcess;
  stdin: InputSpec;
  /** Called with the process's id before any of its output. */
  onStart: (pid: number) => void;
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
}

/** A process beside the command of a sandbox. */
export interface ExecProcess {
  input: ProcessInput;
  signal: (signal: number) => void;
  /** Kills what is left of the process. */
  end: () => void;
  ended: Promise<ExecOutcome>;
}

interface ExecOutcome {
  /** The shell's code for a process that a signal has ended: 128 and the signal's number. */
  exitCode: number;
  elapsedSeconds: number;
  resources: EventResources;
}

/** Normally runc starts a process in some milliseconds. */
const maxStartSeconds = 60;

/**
 * Starts a process in a running sandbox: in its namespaces and control groups, with its system call filter. Resolves when the
 * process has started or has failed to start, and to `undefined` if the sandbox is gone.
 *
 * runc has to be in the PID namespace in which the recorded PIDs of the sandbox's processes are valid. So it ends with that
 * namespace, as does everything that it starts.
 */
export async function startInSandbox(
  host: SandboxHost,
  live: LiveSandbox,
  request: ExecRequest,
): Promise<ExecProcess | undefined> {
  const first = findFirstInNamespace(live.pid);
  if (first === undefined) return undefined;
  const { clock, environment, layout } = host;
  const root = `/proc/${live.pid}/root${layout.root}`;
  const refused = checkCommand({ root, locate: live.locate }, request.process);
  if (refused !== undefined) return refuse(request, refused);
  const path = (kind: string) => join(live.directory, `${request.name}.${kind}`);
  const configuration = join(live.configurations, `${request.name}.json`);
  const written = join(`/proc/${first}/root`, configuration);
  if (!writeUnlessGone(written, JSON.stringify(live.configure(request.process)))) return undefined;
  const enter = [findProgram("nsenter", environment), "--target", String(first), "--mount", "--pid"];
  const files = { process: configuration, pid: path("pid"), log: path("log") };
  const runtime = live.runtime.exec(layout, { id: live.id, ...files });
  const command = killedWithParent([...enter, ...live.guard.prefix, ...runtime], environment);
  const startedAt = steadyTime(clock);
  const helper = live.guard.hold(() =>
    live.runtime.launch(command, { environment: helperEnvironment(environment) }),
  );

  let hasStarted = false;
  const started = () => {
    if (hasStarted) return;
    hasStarted = true;
    rmSync(written, { force: true });
    request.onStart(helper.pid);
    stderr.review();
  };
  const output = (stream: "stdout" | "stderr", chunk: Uint8Array) => {
    started();
    request.onOutput(stream, chunk);
  };
  const hasPid = () => readPid(path("pid")) !== undefined;
  const stderr = new StartupStderr(hasPid, (chunk) => output("stderr", chunk));
  const input = new ProcessInput();
  const hasEnded = () => !isRunning(helper);

  async function waitForEnd(): Promise<ExecOutcome> {
    await Promise.all([
      input.connect(helper.stdin, request.stdin),
      forEachChunk(helper.stdout, (chunk) => output("stdout", chunk)),
      forEachChunk(helper.stderr, (chunk) => stderr.write(chunk)),
      helper.exited,
    ]);
    live.guard.release(helper.pid);
    const failure = stderr.end(path("log"));
    started();
    if (failure !== undefined) request.onOutput("stderr", Buffer.from(`${failure}\n`));
    // An instance may run for a day, with any number of processes in succession.
    for (const kind of ["pid", "log"]) rmSync(path(kind), { force: true });
    return {
      exitCode: failure === undefined ? await helper.exited : 126,
      elapsedSeconds: (steadyTime(clock) - startedAt) / 1000,
      resources: eventResources(helper.resourceUsage()),
    };
  }

  async function waitForStart(): Promise<void> {
    for (let wait = 1; !hasPid() && !hasEnded(); wait = Math.min(wait * 2, 50)) await clock.sleep(wait);
    if (!hasEnded()) started();
  }

  const ended = waitForEnd();
  // The caller gets its error only if the process starts. An error without a handler would end this process.
  ended.catch(() => undefined);
  await beforeDeadline(helper, command, waitForStart(), {
    clock,
    seconds: maxStartSeconds,
    failure: "did not start a process in the sandbox",
  });
  return {
    input,
    ended,
    signal(signal) {
      const pid = findDescendant(helper.pid, readPid(path("pid")));
      if (pid !== undefined && !hasEnded()) sendSignal(pid, signal);
    },
    end() {
      const pid = findDescendant(helper.pid, readPid(path("pid")));
      if (pid !== undefined) sendSignal(pid, "SIGKILL");
      endHelper(helper);
    },
  };
}

/** Returns a process that can't be started: it has ended, with the reason on its standard error. */
function refuse(request: ExecRequest, { exitCode, message }: RefusedCommand): ExecProcess {
  request.onStart(0);
  request.onOutput("stderr", Buffer.from(`${message}\n`));
  return {
    input: new ProcessInput(),
    signal: () => {},
    end: () => {},
    ended: Promise.resolve({ exitCode, elapsedSeconds: 0, resources: eventResources(undefined) }),
  };
}

/** Writes a process's configuration. Returns false if the sandbox is gone. */
function writeUnlessGone(path: string, configuration: string): boolean {
  try {
    // It contains the environment, and so its secrets.
    writeFileSync(path, configuration, { mode: 0o600 });
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

/** Signals a sandbox's command. It is the first process of a PID namespace: most signals reach it only if it handles them. */
export function signalCommand({ layout }: SandboxHost, live: LiveSandbox, signal: number): void {
  // runc records the PID in two places, one after the other.
  const number = firstProcess(layout, live.id) ?? readPid(join(live.directory, "pid"));
  const pid = findDescendant(live.pid, number);
  if (pid !== undefined) sendSignal(pid, signal);
}

/** Signals runc, since the kernel does not: the terminal whose size runc reads is not its controlling terminal. */
export function notifyResize({ pid }: LiveSandbox): void {
  const runc = findFirstInNamespace(pid);
  if (runc !== undefined) sendSignal(runc, "SIGWINCH");
}
