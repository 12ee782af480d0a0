import type { BuildRecord, BuildStep } from "./build-record.ts";

/** A variable whose changes have caused a step to run again in most builds. */
export interface ChangedVariable {
  name: string;
  /** The first instruction that was run again. */
  title: string;
  /** The number of builds in which that happened, and of all builds. */
  misses: number;
  builds: number;
  /** The time that the instruction and those after it took in these builds. */
  seconds: number;
}

/** The minimum of changes: fewer may be a user's experiments. */
const minMisses = 3;

/** Finds variables that changed in at least half of the builds of one Dockerfile, the most expensive first. */
export function changedVariables(records: readonly BuildRecord[]): ChangedVariable[] {
  const found = new Map<string, ChangedVariable>();
  for (const { steps } of records) {
    const seen = new Set<string>();
    for (const step of steps) {
      const { reason } = step;
      if (step.outcome !== "made" || (reason?.reason !== "ARG" && reason?.reason !== "ENV")) continue;
      const { name } = reason;
      // The steps after it have the same reason.
      const place = `${step.stage?.index} ${name}`;
      if (step.instruction !== "RUN" || seen.has(place)) continue;
      seen.add(place);
      const known = found.getOrInsertComputed(JSON.stringify([name, step.title]), () => ({
        ...{ name, title: step.title, misses: 0, builds: records.length, seconds: 0 },
      }));
      known.misses += 1;
      known.seconds += secondsFrom(step, steps);
    }
  }
  return [...found.values()]
    .filter(({ misses, builds }) => misses >= minMisses && misses * 2 >= builds)
    .sort((one, other) => other.seconds - one.seconds);
}

/** Returns what the step, and those of its stage that were made after it, took. */
function secondsFrom(first: BuildStep, steps: readonly BuildStep[]): number {
  let milliseconds = 0;
  for (const { step, stage, outcome, start, end } of steps)
    if (outcome === "made" && stage?.index === first.stage?.index && step >= first.step)
      milliseconds += end - start;
  return milliseconds / 1000;
}
