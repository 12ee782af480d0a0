import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Layout } from "../layout.ts";
import { layerDirectory } from "../records/layers.ts";
import { noteHelper } from "../system/helper-process.ts";
import { type Environment, locate } from "../system/programs.ts";
import { containerPid, killContainer, removeContainer } from "./containers.ts";
import { StartupStderr } from "./failed-start.ts";
import { enterMountNamespace, type MountNamespace } from "./mount-namespace.ts";
import { copyRootAttributes, provideMountPoints, removeMountPoints } from "./mount-points.ts";
import { type SandboxProcess, sandboxConfig } from "./sandbox-config.ts";
import { type StagedFile, stageFiles } from "./staging.ts";

export interface SandboxHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
}

export interface SandboxRequest {
  /** Names the container; no other one has the same. */
  id: string;
  /** The operation's own directory. */
  directory: string;
  /** The image's layers, the uppermost first. */
  chain: readonly [number, ...number[]];
  files: readonly StagedFile[];
  /** Told of the mounted root, since who runs the command may depend on the image's files. */
  process: (root: string) => SandboxProcess;
  hostname: string;
  stdin: Uint8Array | undefined;
  timeoutSeconds: number;
  onStart: (pid: number, process: SandboxProcess) => void;
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
  /** Ends the command and all that it started. */
  signal: AbortSignal;
}

export interface SandboxOutcome {
  pid: number;
  exitCode: number;
  timedOut: boolean;
  elapsedSeconds: number;
}

/**
 * Runs one command in a container on top of the image's layers. What it changed is in `<directory>/upper` afterwards, and
 * nothing else is. Rejects where the sandbox could not be set up.
 */
export async function runInSandbox(host: SandboxHost, request: SandboxRequest): Promise<SandboxOutcome> {
  const { layout, environment } = host;
  const upper = join(request.directory, "upper");
  for (const name of ["upper", "work"]) mkdirSync(join(request.directory, name));
  copyRootAttributes(layerDirectory(layout, request.chain[0]), upper);
  const kill = new KillSwitch(layout, request);
  try {
    const namespace = await enterMountNamespace(layout, environment, {
      chain: request.chain,
      operation: request.directory,
      inUserNamespace: host.inUserNamespace,
      command: runcCommand(host, request),
      started(process) {
        noteHelper(request.directory, process.pid);
        kill.arm(process);
      },
    });
    const made = provideMountPoints(namespace.root, upper);
    await stageFiles(namespace.root, request.files);
    const process = request.process(namespace.root);
    writeBundle(host, request, process);
    const outcome = await supervise(host, request, namespace, process, kill);
    removeMountPoints(upper, made);
    return outcome;
  } finally {
    kill.disarm();
    await removeContainer(layout, environment, request.id);
  }
}

function runcCommand(host: SandboxHost, request: SandboxRequest): string[] {
  const { directory, id } = request;
  const log = ["--log", join(directory, "log"), "--log-format", "json"];
  const run = ["run", "--bundle", directory, "--pid-file", join(directory, "pid"), id];
  return [locate("runc", host.environment), "--root", host.layout.containers, ...log, ...run];
}

function writeBundle(host: SandboxHost, request: SandboxRequest, process: SandboxProcess): void {
  const file = (name: string, content: string) => {
    const path = join(request.directory, name);
    writeFileSync(path, content, { mode: 0o644 });
    return path;
  };
  const config = sandboxConfig({
    root: host.layout.root,
    process,
    hostname: request.hostname,
    resolvConf: file("resolv.conf", readOptional("/etc/resolv.conf")),
    hosts: file(
      "hosts",
      `${readOptional("/etc/hosts").trimEnd()}\n127.0.1.1\t${request.hostname}\n`.trimStart(),
    ),
    inUserNamespace: host.inUserNamespace,
  });
  file("config.json", JSON.stringify(config));
}

/** Lets the command go, and sees it to its end. */
async function supervise(
  host: SandboxHost,
  request: SandboxRequest,
  namespace: MountNamespace,
  process: SandboxProcess,
  kill: KillSwitch,
): Promise<SandboxOutcome> {
  const { clock, layout } = host;
  const helper = namespace.process;
  const stderr = new StartupStderr((chunk) => output("stderr", chunk));
  let pid: number | undefined;
  const started = () => {
    if (pid !== undefined) return;
    pid = containerPid(layout, request.id) ?? readPid(join(request.directory, "pid"));
    if (pid !== undefined) request.onStart(pid, process);
  };
  const output = (stream: "stdout" | "stderr", chunk: Uint8Array) => {
    started();
    request.onOutput(stream, chunk);
  };

  request.signal.throwIfAborted();
  const startedAt = clock.now();
  const ended = new AbortController();
  const timeout = clock.sleep(request.timeoutSeconds * 1000, ended.signal).then(
    () => kill.timeOut(),
    () => {},
  );
  const notice = noticeStart(clock, ended.signal, () => {
    started();
    return pid !== undefined;
  });
  try {
    namespace.proceed();
    await Promise.all([
      sendInput(helper, request.stdin),
      forEachChunk(namespace.stdout, (chunk) => output("stdout", chunk)),
      forEachChunk(helper.stderr, (chunk) => stderr.write(chunk)),
      helper.exited,
    ]);
  } finally {
    ended.abort();
    await Promise.all([timeout, notice]);
  }
  const failure = stderr.end(join(request.directory, "log"));
  if (failure?.kind === "sandbox" && !kill.used) {
    throw new BoughError(`the sandbox could not be started: ${failure.message}`);
  }
  if (failure?.kind === "command") request.onOutput("stderr", Buffer.from(`${failure.message}\n`));
  else started();
  return {
    pid: pid ?? 0,
    exitCode: kill.used ? 137 : failure?.kind === "command" ? failure.exitCode : await helper.exited,
    timedOut: kill.timedOut,
    elapsedSeconds: (clock.now() - startedAt) / 1000,
  };
}

/** Ends a sandbox at whatever point it has reached. */
class KillSwitch {
  readonly #layout: Layout;
  readonly #request: SandboxRequest;
  #helper: Subprocess | undefined;
  timedOut = false;
  used = false;

  constructor(layout: Layout, request: SandboxRequest) {
    this.#layout = layout;
    this.#request = request;
    request.signal.addEventListener("abort", this.#kill);
  }

  arm(helper: Subprocess): void {
    this.#helper = helper;
    if (this.#request.signal.aborted) this.#kill();
  }

  timeOut(): void {
    this.timedOut = true;
    this.#kill();
  }

  disarm(): void {
    this.#request.signal.removeEventListener("abort", this.#kill);
    if (this.#helper !== undefined && isRunning(this.#helper)) this.#killHelper(this.#helper.pid);
  }

  readonly #kill = () => {
    this.used = true;
    if (this.#helper === undefined || !isRunning(this.#helper)) return;
    // With its first process gone, runc sees to the rest. Before there is one, runc itself has to go.
    if (!killContainer(this.#layout, this.#request.id)) this.#killHelper(this.#helper.pid);
  };

  /** The helper leads a session of its own. */
  #killHelper(pid: number): void {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It ended meanwhile.
    }
  }
}

function isRunning(helper: Subprocess): boolean {
  return helper.exitCode === null && helper.signalCode === null;
}

/** A command that is silent for long is to be seen as started all the same. */
async function noticeStart(clock: Clock, ended: AbortSignal, hasStarted: () => boolean): Promise<void> {
  for (let wait = 8; !ended.aborted && !hasStarted(); wait = Math.min(wait * 2, 250)) {
    await clock.sleep(wait, ended).catch(() => {});
  }
}

async function sendInput(
  helper: Subprocess<"pipe", "pipe", "pipe">,
  input: Uint8Array | undefined,
): Promise<void> {
  try {
    if (input !== undefined) helper.stdin.write(input);
    await helper.stdin.end();
  } catch {
    // The command ended without reading all of it: its own affair.
  }
}

async function forEachChunk(
  chunks: AsyncIterable<Uint8Array>,
  use: (chunk: Uint8Array) => void,
): Promise<void> {
  for await (const chunk of chunks) use(chunk);
}

function readPid(path: string): number | undefined {
  const pid = Number.parseInt(readOptional(path), 10);
  return Number.isNaN(pid) ? undefined : pid;
}

function readOptional(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
