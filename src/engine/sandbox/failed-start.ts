import { readFileSync } from "node:fs";
import { CrunWords } from "./runtime/crun-words.ts";
import { RuncWords } from "./runtime/runc-words.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { FailedStart, RuntimeWords, Start } from "./runtime/runtime-words.ts";

/** Bytes. A runtime says why it can't start a command in a line; a command that goes on after such words is not to be held back. */
const maxHeld = 64 * 1024;

/**
 * Standard error of a sandbox, where the runtime speaks too when it can't start the command. What can be its words is held
 * back until its log says whether they are.
 */
export class StartupStderr {
  readonly #deliver: (chunk: Uint8Array) => void;
  readonly #words: RuntimeWords;
  #held: Buffer | undefined = Buffer.alloc(0);

  constructor(runtime: Runtime, start: Start, deliver: (chunk: Uint8Array) => void) {
    this.#words = runtime.kind === "runc" ? new RuncWords(start) : new CrunWords(start);
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

  /** Delivers what is held back and turns out to be the command's own: call it when the command has started, too. */
  review(): void {
    if (this.#held === undefined || this.#held.length === 0) return;
    if (!this.#words.mayBegin(this.#held) || this.#held.length > maxHeld) this.#release();
  }

  /** Call it when the runtime has ended; `log` is its log. Delivers what turns out to be the command's own output. */
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

/** A runtime writes one JSON object a line. */
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
