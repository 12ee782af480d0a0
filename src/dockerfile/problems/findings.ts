import type { DockerfileWarning } from "../instruction.ts";
import type { Problem } from "./problem.ts";

/** A file that is not a Dockerfile at all has a problem in each line; nobody reads more of them than this. */
const maximumProblems = 100;

/** What is found while a file is read. */
export class Findings {
  readonly problems: Problem[] = [];
  readonly warnings: DockerfileWarning[] = [];

  addProblem(problem: Problem): void {
    if (!this.isFull) this.problems.push(problem);
  }

  addWarning(warning: DockerfileWarning): void {
    if (this.warnings.length < maximumProblems) this.warnings.push(warning);
  }

  /** There is no point in reading on. */
  get isFull(): boolean {
    return this.problems.length >= maximumProblems;
  }
}
