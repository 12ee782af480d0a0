import { secretsAmong } from "../../dockerfile/secrets.ts";
import { encodeBytes, type InstanceResult, type WireBytes } from "../../service/wire/operation.ts";
import type { EventData } from "../records/event-files.ts";
import { resultResources } from "../sandbox/limits/usage.ts";
import type { SandboxProcess } from "../sandbox/sandbox-process.ts";
import type { SandboxOutcome } from "../sandbox/sandbox-request.ts";

/** The end of a process. `signal` is -1 unless a signal has ended it. */
interface ProcessEnd extends Omit<SandboxOutcome, "limitsHit">, Partial<Pick<SandboxOutcome, "limitsHit">> {
  signal: number;
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
  readonly #append: (type: string, data: EventData) => void;
  readonly stdout: CapturedStream;
  readonly stderr: CapturedStream;

  constructor(truncateOutputAt: number, append: (type: string, data: EventData) => void) {
    const capture = (stream: "stdout" | "stderr") =>
      new CapturedStream(truncateOutputAt, (chunk) => append(stream, chunk));
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

  /** Records received input: only its length, since it may be secret. */
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

/** Hides a whole value, or only the password of a URL that contains one. */
function maskValue(value: string, mask: (text: string) => string): string {
  const shown = mask(value);
  return shown === value ? "***" : shown;
}

/** Maximum bytes of one stream that are held. Longer output is only in the operation's events. */
const maxHeldBytes = 256 * 1024;

/**
 * One output stream of a command. Passes chunks on as they arrive, but never splits a UTF-8 character; holds short output for the
 * final record; drops output over the limit.
 */
export class CapturedStream {
  readonly #limit: number;
  readonly #deliver: (chunk: Uint8Array) => void;
  #held: Uint8Array[] = [];
  /** The first bytes of a character whose rest has not arrived. */
  #pending: Uint8Array = new Uint8Array();
  #keptBytes = 0;
  #droppedBytes = 0;

  constructor(limit: number, deliver: (chunk: Uint8Array) => void) {
    this.#limit = limit;
    this.#deliver = deliver;
  }

  write(chunk: Uint8Array): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const whole = bytes.length - unfinishedBytes(bytes);
    this.#pending = bytes.slice(whole);
    this.#keep(bytes.subarray(0, whole));
  }

  /** Passes on bytes that were held back as the possible beginning of a character. */
  end(): void {
    this.#keep(this.#pending);
    this.#pending = new Uint8Array();
  }

  get emittedBytes(): number {
    return this.#keptBytes;
  }

  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** True if all of the output is held here, not only in the events. */
  get isHeld(): boolean {
    return this.#keptBytes <= maxHeldBytes;
  }

  /** Returns empty output if it is not held. */
  toWire(): WireBytes {
    return { ...encodeBytes(Buffer.concat(this.#held)), truncated: this.#droppedBytes > 0 };
  }

  #keep(bytes: Uint8Array): void {
    const room = this.#droppedBytes > 0 ? 0 : this.#limit - this.#keptBytes;
    const fits = bytes.length <= room;
    const kept = fits ? bytes : bytes.subarray(0, room - unfinishedBytes(bytes.subarray(0, room)));
    this.#droppedBytes += bytes.length - kept.length;
    if (kept.length === 0) return;
    this.#keptBytes += kept.length;
    // A copy, since the reader may reuse the memory.
    const copy = kept.slice();
    if (this.isHeld) this.#held.push(copy);
    else this.#held = [];
    this.#deliver(copy);
  }
}

/** Returns the number of bytes, 0 to 3, at the end that begin an incomplete UTF-8 character. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < sequenceLength(byte) ? back : 0;
  }
  return 0;
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf8) return 1;
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
}
