/** `--script`: a local file that a shell, or what its first line names, reads as its program. */
import { readFileSync } from "node:fs";
import { posix, resolve } from "node:path";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

export interface Script {
  /** What reads it. */
  words: readonly string[];
  /** `undefined`: it is what is piped in. */
  text: Uint8Array | undefined;
}

/** @param given a path, or `-` for standard input */
export function readScript(given: string, { stdin, workingDirectory }: Runtime): Script {
  if (given === "-") {
    if (stdin.isPiped) return { words: ["sh", ...fromInput], text: undefined };
    throw new BoughError("--script - reads standard input, and nothing is piped in", {
      kind: "usage",
      hint: "For example: bough run -I - < script.sh",
    });
  }
  try {
    const text = readFileSync(resolve(workingDirectory, given));
    return { words: interpreterOf(text), text };
  } catch (error) {
    throw new BoughError(`cannot read --script ${given}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}

/** A shell's options; what follows are the script's own words. */
const fromInput = ["-s", "--"];
const shells = /^(sh|ash|bash|dash|ksh|zsh)$/;

/**
 * Returns what the first line names, unless that is bough itself: `#!/usr/bin/env -S bough run -I`. Programs read `-`, shells
 * `-s`.
 */
function interpreterOf(text: Buffer): string[] {
  const [, line = ""] = /^#!([^\n\r]*)/.exec(text.subarray(0, 1024).toString()) ?? [];
  const words = line.split(/\s+/).filter((word) => word !== "");
  const isEnv = posix.basename(words[0] ?? "") === "env";
  const [program = "", ...flags] = isEnv ? words.slice(words[1] === "-S" ? 2 : 1) : words;
  const name = posix.basename(program);
  if (name === "" || name === "bough") return ["sh", ...fromInput];
  return [program, ...flags, ...(shells.test(name) ? fromInput : ["-"])];
}
