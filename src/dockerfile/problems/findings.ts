import type { DockerfileWarning } from "../instruction.ts";
import type { Problem } from "./problem.ts";

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
