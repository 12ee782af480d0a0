import { BoughError } from "../../errors.ts";
import type { Problem } from "./problem.ts";
import { renderProblem } from "./problem-text.ts";

/**
 * Thrown for a Dockerfile that does not parse, with all of its problems. The message shows each problem with its file, line,
 * source and a caret under the culprit. A problem that only the build finds is passed alone.
 */
export class DockerfileError extends BoughError {
  override readonly name = "DockerfileError";
  readonly problems: readonly Problem[];

  constructor(
    source: { path: string; lines: readonly string[] },
    problems: readonly Problem[],
    options: { cause?: unknown; isCutShort?: boolean } = {},
  ) {
    const rendered = problems.map((problem) => renderProblem(source, problem));
    if (options.isCutShort === true) rendered.push("... and more: the rest of the file was not read");
    super(rendered.join("\n"), { kind: "usage", cause: options.cause });
    this.problems = problems;
  }
}
