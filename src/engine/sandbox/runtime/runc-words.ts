import type { FailedStart, RuntimeWords, Start } from "./runtime-words.ts";

/** The beginnings of runc's messages, by its subcommand. */
const prefixes = { run: Buffer.from("runc run failed: "), exec: Buffer.from("exec failed: ") };

export class RuncWords implements RuntimeWords {
  readonly #prefix: Buffer;

  constructor({ as }: Pick<Start, "as">) {
    this.#prefix = prefixes[as];
  }

  mayBegin(held: Buffer): boolean {
    const length = Math.min(this.#prefix.length, held.length);
    return held.subarray(0, length).equals(this.#prefix.subarray(0, length));
  }

  explain(error: string): FailedStart {
    const start = error.indexOf('exec: "');
    if (start === -1) return { kind: "sandbox", message: error.replace(this.#prefix.toString(), "") };
    const reason = error.slice(start);
    const isMissing = /executable file not found|no such file or directory/.test(reason);
    return { kind: "command", exitCode: isMissing ? 127 : 126, message: reason };
  }

  translate(): undefined {}
}
