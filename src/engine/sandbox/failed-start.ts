import { readFileSync } from "node:fs";

/** Why there was no command to run: its own fault (as a shell reports it), or the sandbox's. */
type FailedStart =
  | { kind: "command"; exitCode: 126 | 127; message: string }
  | { kind: "sandbox"; message: string };

/** How runc's words begin, by its command. */
const prefixes = { run: Buffer.from("runc run failed: "), exec: Buffer.from("exec failed: ") };
/** Bytes. runc says why it can't start a command in a line; a command that goes on after these words is not to be held back. */
const maxHeld = 64 * 1024;

/**
 * Standard error of a sandbox, where runc speaks too when it can't start the command. What begins like its words is held
 * back until its log says whether they are.
 */
export class StartupStderr {
  readonly #deliver: (chunk: Uint8Array) => void;
  readonly #prefix: Buffer;
  #held: Buffer | undefined = Buffer.alloc(0);

  constructor(command: keyof typeof prefixes, deliver: (chunk: Uint8Array) => void) {
    this.#prefix = prefixes[command];
    this.#deliver = deliver;
  }

  write(chunk: Uint8Array): void {
    if (this.#held === undefined) {
      this.#deliver(chunk);
      return;
    }
    this.#held = Buffer.concat([this.#held, chunk]);
    const length = Math.min(this.#prefix.length, this.#held.length);
    const isLikeRunc = this.#held.subarray(0, length).equals(this.#prefix.subarray(0, length));
    if (!isLikeRunc || this.#held.length > maxHeld) this.#release();
  }

  /** Call it when runc has ended; `log` is its log. Delivers what turns out to be the command's own output. */
  end(log: string): FailedStart | undefined {
    const failure = readFailure(log, this.#prefix.toString());
    if (failure === undefined) this.#release();
    return failure;
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.length > 0) this.#deliver(held);
  }
}

function readFailure(log: string, prefix: string): FailedStart | undefined {
  const message = lastError(log);
  if (message === undefined) return undefined;
  const start = message.indexOf('exec: "');
  if (start === -1) return { kind: "sandbox", message: message.replace(prefix, "") };
  const reason = message.slice(start);
  const isMissing = /executable file not found|no such file or directory/.test(reason);
  return { kind: "command", exitCode: isMissing ? 127 : 126, message: reason };
}

/** runc writes one JSON object a line. */
function lastError(log: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(log, "utf8");
  } catch {
    return undefined;
  }
  const messages = text.split("\n").flatMap((line) => {
    try {
      const entry = JSON.parse(line) as { level?: unknown; msg?: unknown };
      return entry.level === "error" && typeof entry.msg === "string" ? [entry.msg] : [];
    } catch {
      return [];
    }
  });
  return messages.at(-1);
}
