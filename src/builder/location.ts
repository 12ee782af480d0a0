import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";
import { DockerfileError } from "../dockerfile/problems/dockerfile-error.ts";
import { maskSecrets, secretsAmong } from "../dockerfile/secrets.ts";
import { BoughError } from "../errors.ts";
import { stateFailure } from "../state-failure.ts";
import { visible } from "../visible.ts";
import type { ShownInstruction } from "./events.ts";
import type { AskedBuild } from "./job.ts";
import { PlacementError } from "./state/placement-error.ts";
import { secretTexts } from "./state/secrets.ts";

/** Performs `action` for an instruction. Adds the instruction's place and source lines to its errors. */
export async function withLocation<Result>(
  { dockerfile, buildArgs, secrets }: AskedBuild,
  instruction: Instruction,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (thrown) {
    const error = stateFailure(thrown) ?? thrown;
    if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
    const { range } = instructionToBlame(error, dockerfile) ?? instruction;
    const message = secretsAmong([...buildArgs, ...secretTexts(secrets)]).mask(error.message);
    const { kind, hint } = error;
    throw new DockerfileError(dockerfile, [{ message, range }], { kind, hint, cause: error });
  }
}

function instructionToBlame(error: BoughError, { instructions }: Dockerfile): Instruction | undefined {
  if (!(error instanceof PlacementError)) return undefined;
  return instructions.find(({ range }) => range.start === error.line);
}

/** Returns the parts of an instruction that events show. */
export function showInstruction(instruction: Instruction): ShownInstruction {
  const { name, range } = instruction;
  const from = name === "COPY" ? instruction.from : undefined;
  const shown = { name, line: range.start, title: titleOf(instruction) };
  return from === undefined ? shown : { ...shown, from };
}

/**
 * Returns the instruction on one line without its secrets, such as `RUN <command>`; a here-document by its first line: `RUN <<END
 * (make...)`.
 */
export function titleOf({ name, title, heredocs }: Pick<Instruction, "name" | "title" | "heredocs">): string {
  const document = name === "RUN" ? heredocs[0]?.content.trim() : undefined;
  const [first = "", ...others] = document?.split("\n", 2) ?? [];
  const body = first === "" ? "" : ` (${first.trim()}${others.length > 0 ? "..." : ""})`;
  return visible(maskSecrets(`${title}${body}`.replaceAll("\t", " ")));
}
