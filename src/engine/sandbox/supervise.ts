import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { firstProcess, readPid } from "./containers.ts";
import { StartupStderr } from "./failed-start.ts";
import { ComplaintFilter } from "./kill-complaint.ts";
import type { KillSwitch } from "./kill-switch.ts";
import type { LimitGuard } from "./limits/guard.ts";
import { eventResources } from "./limits/usage.ts";
import type { MountNamespace } from "./root/mount-namespace.ts";
import type { SandboxHost, SandboxOutcome, SandboxRequest } from "./sandbox-request.ts";

/** Lets the command go, and sees it to its end. `onProceed`: it is on its way; `onStart`: it runs. */
export async function supervise(
  host: SandboxHost,
  request: SandboxRequest,
  sandbox: { namespace: MountNamespace; kill: KillSwitch; guard: LimitGuard; program: string },
  { onProceed, onStart }: { onProceed: () => void; onStart: (pid: number) => void },
): Promise<SandboxOutcome> {
  const { clock, layout } = host;
  const { namespace, kill, guard, program } = sandbox;
  const helper = namespace.process;
  // runc notes it in its state first.
  const hasStarted = () => {
    const noted = request.runtime.kind === "runc" ? firstProcess(layout, request.id) : undefined;
    return (noted ?? readPid(join(request.directory, "pid"))) !== undefined;
  };
  const stderr = new StartupStderr(request.runtime, { as: "run", program, hasStarted }, (chunk) =>
    output("stderr", chunk),
  );
  const complaints = new ComplaintFilter();
  const writeStderr = (chunk: Uint8Array) => {
    if (chunk.length > 0) stderr.write(chunk);
  };
  let pid: number | undefined;
  const started = () => {
    if (pid !== undefined) return;
    if (!hasStarted()) return;
    // The command's own number means something in the sandbox only; whoever ends this one ends them all.
    pid = helper.pid;
    onStart(pid);
    stderr.review();
  };
  const output = (stream: "stdout" | "stderr", chunk: Uint8Array) => {
    started();
    return request.onOutput(stream, chunk);
  };

  /** crun notes it while the command already runs. */
  const noted = async () => {
    const isThere = () => helper.exitCode === null && helper.signalCode === null;
    while (pid === undefined && !hasStarted() && isThere()) await clock.sleep(1);
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
  let wasKilled = false;
  const watch = guard.watch(helper.pid, kill, ended.signal);
  try {
    await namespace.proceed();
    onProceed();
    await Promise.all([
      request.input.connect(helper.stdin, request.stdin),
      forEachChunk(namespace.stdout, async (chunk) => {
        await noted();
        await output("stdout", chunk);
      }),
      forEachChunk(helper.stderr, (chunk) => writeStderr(complaints.pass(chunk, { isKilled: kill.used }))),
      helper.exited,
    ]);
    // crun is held to the limit of memory, too, and is killed where nobody else of the command is left to be.
    const wasLost =
      !kill.used && complaints.wasMade && guard.hits().some(({ limit }) => limit === "max_memory_bytes");
    wasKilled = kill.used || wasLost || (complaints.wasMade && request.isCancelled());
    writeStderr(wasKilled ? complaints.end() : complaints.held);
  } finally {
    ended.abort();
    await Promise.all([timeout, notice, watch]);
  }
  const failure = stderr.end(join(request.directory, "log"));
  if (failure?.kind === "sandbox" && !kill.used) {
    throw new BoughError(`the sandbox could not be started: ${failure.message}`);
  }
  if (failure?.kind === "command") await request.onOutput("stderr", Buffer.from(`${failure.message}\n`));
  else started();
  return {
    pid: pid ?? 0,
    exitCode: wasKilled ? 137 : failure?.kind === "command" ? failure.exitCode : await helper.exited,
    timedOut: kill.timedOut,
    elapsedSeconds: (clock.now() - startedAt) / 1000,
    limitsHit: guard.hits(),
    resources: eventResources(helper.resourceUsage()),
  };
}

/** Milliseconds between two looks: runc takes less than a second, unless the machine is short of something. */
const [soon, later] = [8, 250];

/** A command that is silent for long is to be seen as started all the same. */
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
