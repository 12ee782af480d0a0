import type { LineRange } from "../instruction.ts";

/** One thing that is wrong with a Dockerfile. */
export interface Problem {
  /** Docker's name of the build check, where it has one. */
  rule?: string;
  message: string;
  /** What would have been right, as the rest of a sentence that starts with "expected". */
  expected?: string;
  /** The lines of the instruction. */
  range: LineRange;
  /** Where the culprit stands; without it the whole instruction is meant. */
  culprit?: Culprit;
}

/** A stretch of one physical line: 1-based line and column, length in UTF-16 units. */
export interface Culprit {
  line: number;
  column: number;
  length: number;
}
