import { readFileSync } from "node:fs";
import type { ContainerRuntime, FailedStart, RuntimeWords, Start } from "./runtime/runtime.ts";

/** The limit in bytes. A runtime's error is one line; a command's output that continues past that must not be held back. */
const maxHeld = 64 * 1024;

/**
 * Standard error of a sandbox. The runtime writes to it as well when it can't start the command. Output that may be the runtime's
 * is held back until the runtime's log shows whether it is.
 */
export class StartupStderr {
  readonly #deliver: (chunk: Uint8Array) => void;
  readonly #words: RuntimeWords;
  #held: Buffer | undefined = Buffer.alloc(0);

  constructor(runtime: ContainerRuntime, start: Start, deliver: (chunk: Uint8Array) => void) {
    this.#words = runtime.words(start);
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
    if (!this.#words.mayBegin(this.#held) || this.#held.length > maxHeld) this.#release();
  }

  /** Call it when the runtime has ended; `log`: the path of its log. Delivers held output that proves to be the command's own. */
  end(log: string): FailedStart | undefined {
    const error = lastError(log);
    if (error !== undefined) return this.#words.explain(error);
    if (this.#held !== undefined) this.#held = this.#words.translate(this.#held) ?? this.#held;
    this.#release();
    return undefined;
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
