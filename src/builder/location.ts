import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";
import { DockerfileError } from "../dockerfile/problems/problem.ts";
import { maskSecrets, secretsAmong } from "../dockerfile/secrets.ts";
import { BoughError, type BoughErrorOptions } from "../errors.ts";
import { stateFailure } from "../state-failure.ts";
import { visible } from "../visible.ts";
import type { ShownInstruction } from "./events.ts";
import type { AskedBuild } from "./job.ts";
import { secretTexts } from "./state/secrets.ts";
import type { Staged } from "./state/staged.ts";

/** Performs `action` for an instruction. Adds the instruction's place and source lines to its errors. */
export async function withLocation<Result>(
  { dockerfile, buildArgs, secrets }: Pick<AskedBuild, "dockerfile" | "buildArgs" | "secrets">,
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

/** Thrown if a staged file can't be put in place. The error belongs to the COPY, ADD or WORKDIR that staged it, not to the RUN. */
export class PlacementError extends BoughError {
  override readonly name = "PlacementError";
  /** The instruction's line; `undefined` if it can't be determined. */
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined, options: BoughErrorOptions = {}) {
    super(message, options);
    this.line = line;
  }
}

/** Returns the line that staged the path named in `text`, an error of the service; the longest path if there are several. */
export function lineNamedIn(text: string, staged: Staged): number | undefined {
  let found = "";
  for (const path of staged.keys()) if (path.length > found.length && names(text, path)) found = path;
  return staged.get(found)?.line;
}

/** Returns true if the text contains the path, and not only as a part of a longer one. */
function names(text: string, path: string): boolean {
  for (let start = text.indexOf(path); start >= 0; start = text.indexOf(path, start + 1)) {
    const [before, after] = [text.charAt(start - 1), text.charAt(start + path.length)];
    if (!/[\w./-]/.test(before) && !/[\w/-]/.test(after)) return true;
  }
  return false;
}
