import { secretsAmong } from "../../dockerfile/secrets.ts";
import type { InstanceResult, LimitHit } from "../../service/wire/operation.ts";
import { type EventResources, resultResources } from "../sandbox/limits/usage.ts";
import type { SandboxProcess } from "../sandbox/sandbox-process.ts";
import { CapturedStream, encodeBytes } from "./output.ts";

/** The end of a process. `signal` is -1 unless a signal has ended it. */
interface ProcessEnd {
  pid: number;
  exitCode: number;
  signal: number;
  timedOut: boolean;
  elapsedSeconds: number;
  resources: EventResources;
  limitsHit?: readonly LimitHit[];
}

/** The parts of a process's request that its events contain. */
interface StartedCommand {
  command: string;
  args: readonly string[];
  shell: boolean;
  /** 0 for a process without a timeout. */
  timeoutSeconds: number;
  truncateOutputAt: number;
}

/** A result in the form that a record stores. */
export interface RecordedResult extends InstanceResult {
  /** The output is too long to be stored in the record as well: `withOutput` adds it on request. */
  output_in_events?: true;
}

/** The events of one process, and its captured output. */
export class ProcessEvents {
  readonly #append: (type: string, data: Record<string, unknown>) => void;
  readonly stdout: CapturedStream;
  readonly stderr: CapturedStream;

  constructor(truncateOutputAt: number, append: (type: string, data: Record<string, unknown>) => void) {
    const capture = (stream: "stdout" | "stderr") =>
      new CapturedStream(truncateOutputAt, (chunk) => append(stream, encodeBytes(chunk)));
    this.#append = append;
    this.stdout = capture("stdout");
    this.stderr = capture("stderr");
  }

  spawned(pid: number, started: StartedCommand, { cwd, uid, gid, env }: SandboxProcess): void {
    const { shell, timeoutSeconds, truncateOutputAt } = started;
    this.#append("spawn", {
      pid,
      ...hideSecrets({ ...started, env }),
      shell,
      cwd,
      uid,
      gid,
      timeout: timeoutSeconds,
      truncate_at: truncateOutputAt,
    });
  }

  /** Input may be secret: only its length is recorded. */
  received(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#append("stdin", { value: "", encoding: "ascii", truncated: true, bytes: bytes.length });
  }

  exited(end: ProcessEnd): RecordedResult {
    const streams = { stdout: this.stdout, stderr: this.stderr };
    for (const stream of Object.values(streams)) stream.end();
    for (const [stream, { emittedBytes, droppedBytes }] of Object.entries(streams)) {
      if (droppedBytes === 0) continue;
      this.#append("truncated", { stream, bytes_emitted: emittedBytes, bytes_dropped: droppedBytes });
    }
    const limitsHit = end.limitsHit?.length ? { limits_hit: [...end.limitsHit] } : {};
    this.#append("exit", {
      pid: end.pid,
      code: end.exitCode,
      signal: end.signal,
      timed_out: end.timedOut,
      duration_ms: Math.round(end.elapsedSeconds * 1000),
      resources: end.resources,
      ...limitsHit,
    });
    return {
      state: {
        exit_code: end.exitCode,
        pid: end.pid,
        signal: end.signal,
        timed_out: end.timedOut,
        stopped: false,
        continued: false,
      },
      stdout: streams.stdout.toWire(),
      stderr: streams.stderr.toWire(),
      ...(streams.stdout.isHeld && streams.stderr.isHeld ? {} : { output_in_events: true }),
      resources: resultResources(end.resources, end.elapsedSeconds),
      ...limitsHit,
    };
  }
}

/** Returns a command for display and records: without the values of secret variables, wherever they occur. */
export function hideSecrets(given: {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
}): { command: string; args: string[]; env: Record<string, string> } {
  const variables = Object.entries(given.env);
  const { has, mask } = secretsAmong(variables);
  return {
    command: mask(given.command),
    args: given.args.map(mask),
    env: Object.fromEntries(
      variables.map(([name, value]) => [name, has(name) ? maskValue(value, mask) : value]),
    ),
  };
}

/** Hides the whole value; of a URL that contains a password, only the password. */
function maskValue(value: string, mask: (text: string) => string): string {
  const shown = mask(value);
  return shown === value ? "***" : shown;
}
