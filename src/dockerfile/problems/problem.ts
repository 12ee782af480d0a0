import type { DockerfileWarning, LineRange } from "../instruction.ts";

/** A problem of a Dockerfile. */
export interface Problem {
  /** Docker's name of the build check, if it has one. */
  rule?: string;
  message: string;
  /** The correct form, as the rest of a sentence that starts with "expected". */
  expected?: string;
  /** The lines of the instruction. */
  range: LineRange;
  /** The place of the problem; the whole instruction if missing. */
  culprit?: Culprit;
}

/** A part of one physical line: 1-based line and column, length in UTF-16 units. */
export interface Culprit {
  line: number;
  column: number;
  length: number;
}

/** The maximum number of problems shown: a file that is not a Dockerfile at all has one in each line. */
const maximumProblems = 100;

/** Problems and warnings found while a file is read. */
export class Findings {
  readonly problems: Problem[] = [];
  readonly warnings: DockerfileWarning[] = [];

  addProblem(problem: Problem): void {
    if (!this.isFull) this.problems.push(problem);
  }

  addWarning(warning: DockerfileWarning): void {
    if (this.warnings.length < maximumProblems) this.warnings.push(warning);
  }

  /** True if reading should stop. */
  get isFull(): boolean {
    return this.problems.length >= maximumProblems;
  }
}
