import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";

/** Performs `action` for an instruction; what it rejects with gets the instruction's place and its source lines. */
export async function locate<Result>(
  dockerfile: Dockerfile,
  instruction: Instruction,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
    throw new BoughError(`${place(dockerfile, instruction)}: ${error.message}\n${excerpt(dockerfile, instruction)}`, {
      kind: error.kind,
      cause: error,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    });
  }
}

/** The instruction on one line, as `RUN <command>` in the log. */
export function titleOf(instruction: Instruction): string {
  return visible(instruction.original.replace(/\s*\n\s*/g, " ").trim());
}

function place(dockerfile: Dockerfile, { range }: Instruction): string {
  return `${dockerfile.path}:${range.start}`;
}

const excerptLines = 12;

function excerpt({ lines }: Dockerfile, { range }: Instruction): string {
  const shown = lines.slice(range.start - 1, Math.min(range.end, range.start - 1 + excerptLines));
  const width = String(range.end).length;
  const rows = shown.map((line, index) => `  ${String(range.start + index).padStart(width)} | ${visible(line)}`);
  const left = range.end - range.start + 1 - shown.length;
  return [...rows, ...(left > 0 ? [`  ${" ".repeat(width)} | ... ${left} more lines`] : [])].join("\n");
}

/** Control characters of a Dockerfile must not steer the terminal. */
function visible(text: string): string {
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
