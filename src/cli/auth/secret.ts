import { BoughError, usageError } from "../../errors.ts";
import { Secret } from "../../secret.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import { readAtMost } from "../../streams.ts";
import { isCi } from "../../terminal/color.ts";
import { visible } from "../../visible.ts";
import type { Runtime } from "../process/runtime.ts";

/** True if bough can ask a person at the terminal. */
export function canAsk({ stdin, stderr, environment }: Runtime): boolean {
  return stdin.isTerminal && stderr.isTerminal && !isCi(environment.CI);
}

/** Asks for a line, which is not shown while it is typed. Returns `undefined` for an empty line. */
export async function askSecret(runtime: Runtime, question: string): Promise<Secret | undefined> {
  const { stdin, stderr, signal } = runtime;
  // Raw mode is set before the question, so that not even an immediate answer is echoed.
  stdin.setRawMode(true);
  stderr.write(`${visible(question)}: `);
  try {
    const typed = await rejectOnAbort(signal, readKeys(stdin.stream()));
    return typed === "" ? undefined : Secret.of(typed);
  } finally {
    stdin.setRawMode(false);
    stderr.write("\n");
  }
}

/** Reads the first line of piped input, for `--token -` and `--password-stdin`. */
export async function readSecretLine(runtime: Runtime, option: string): Promise<Secret> {
  const { stdin, signal } = runtime;
  if (!stdin.isPiped) {
    throw usageError(
      `${option} reads standard input, and nothing is piped in`,
      "For example: bough ... < file, or another program's output | bough ...",
    );
  }
  const { bytes } = await rejectOnAbort(signal, readAtMost(maxSecretBytes, stdin.stream()));
  const line = bytes.toString().split(/\r?\n/, 1)[0]?.trim() ?? "";
  if (line === "") throw usageError(`${option}: standard input is empty`);
  return Secret.of(line);
}

const maxSecretBytes = 64 * 1024;
const interrupt = "\u0003";
const endOfInput = "\u0004";
const eraseLine = "\u0015";
const backspaces = "\u007f\b";

/** Reads a typed line. Handles editing and Ctrl-C itself, since a terminal in raw mode does neither. */
async function readKeys(source: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let typed: string[] = [];
  for await (const chunk of source) {
    for (const key of decoder.decode(chunk, { stream: true })) {
      if (key === interrupt) throw new BoughError("interrupted", { kind: "interrupted" });
      if (key === "\r" || key === "\n" || key === endOfInput) return typed.join("").trim();
      if (key === eraseLine) typed = [];
      else if (backspaces.includes(key)) typed.pop();
      else typed.push(key);
    }
  }
  return typed.join("").trim();
}
