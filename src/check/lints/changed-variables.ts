import { titleOf } from "../../builder/location.ts";
import type { Dockerfile, Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { type Finding, warn } from "../rules.ts";

/** A variable whose change made past builds run an instruction again. */
export interface VariableChange {
  name: string;
  /** The instruction's title. */
  title: string;
  /** The builds in which that happened, of all that were looked at. */
  misses: number;
  builds: number;
  seconds: number;
}

/** A RUN that takes less time is not worth a warning. */
const minSecondsEach = 1;

/** Warns of an ARG or ENV above a costly RUN that does not name it, if it changed in most of the past builds. */
export function lintChangedVariables({ stages }: Dockerfile, changes: readonly VariableChange[]): Finding[] {
  return changes.flatMap((change) => {
    const { name, title, misses, builds, seconds } = change;
    if (seconds / misses < minSecondsEach) return [];
    for (const { instructions } of stages) {
      const at = instructions.findIndex((each) => each.name === "RUN" && titleOf(each) === title);
      const run = instructions[at];
      const declaring = instructions.slice(0, Math.max(at, 0)).findLast((each) => declares(each, name));
      if (run?.name !== "RUN" || declaring === undefined || mentions(run, name)) continue;
      const message = `${declaring.name} ${name} has changed in ${misses} of the last ${builds} builds: each time, ${title} (line ${run.range.start}) and what follows was run again, in ${seconds.toFixed(1)} s`;
      const hint = `Declare it after that RUN, unless its command reads ${name} from the environment.`;
      return [{ ...warn("ChangingVariable", message, declaring, JSON.stringify([name, title])), hint }];
    }
    return [];
  });
}

function declares(instruction: Instruction, name: string): boolean {
  if (instruction.name === "ARG") return instruction.declarations.some(({ key }) => key === name);
  return instruction.name === "ENV" && instruction.pairs.some(({ key }) => key === name);
}

function mentions({ original, heredocs }: RunInstruction, name: string): boolean {
  return [original, ...heredocs.map(({ content }) => content)].some((text) => text.includes(name));
}
