import type { StepEntry, StepStore } from "../../store/steps.ts";
import { type Difference, type Explanation, findDifference } from "./step-difference.ts";
import { inputsOf, inputsText } from "./step-inputs.ts";
import type { StepKey } from "./step-key.ts";

/** Remembers the inputs of each step, from the latest build of this Dockerfile in this context to the next one. */
export interface StepMemory {
  /** True if the user asked why steps are not taken from the cache. */
  readonly explains: boolean;
  /** `titles`: those of all instructions of the Dockerfile that make a layer. */
  explain(step: RememberedStep, titles: readonly string[]): Explanation;
  /** `hash`: the step's current hash. Returns the scope that has a layer of this step from other inputs, if there is one. */
  compareShared(
    step: RememberedStep,
    hash: string,
    titles: readonly string[],
  ): { scope: string; difference: Difference } | undefined;
  /** Returns the chain hash that a step had in the latest build, until the step is remembered again. */
  earlierHash(ordinal: number): string | undefined;
  /** Returns true if `remember` needs the step's inputs. */
  needsInputs(step: Pick<RememberedStep, "ordinal">, hash: string): boolean;
  /** Remembers the step once its layer exists. */
  remember(step: RememberedStep, hash: string, signal: AbortSignal): Promise<void>;
  /** Forgets, at the end of a build, the steps that it has not reached, except those whose ordinal `stays` accepts. */
  forgetOthers(stays: (ordinal: number) => boolean): void;
}

export interface RememberedStep {
  ordinal: number;
  /** The instruction on one line. */
  title: string;
  key: StepKey;
}

/** The maximum of bytes stored per build: with thousands of variables before thousands of RUNs, each RUN has them all. */
const maxBytes = 64 * 1024 * 1024;

/** `dockerfile`: its absolute path. */
export function createStepMemory(
  store: StepStore,
  { session, dockerfile, explains }: { session: string; dockerfile: string; explains: boolean },
): StepMemory {
  let known: StepEntry[] | undefined;
  const earlier = () => {
    known ??= store.list(session, dockerfile);
    return known;
  };
  const hashes = store.hashes(session, dockerfile);
  const reached = new Set<number>();
  let room = maxBytes;
  return {
    explains,

    explain(step, titles) {
      if (earlier().length === 0) return { reason: "first build" };
      const nearest = findNearest(earlier(), step, titles);
      if (nearest === undefined) return { reason: "new instruction" };
      const now = inputsOf(step, session);
      return findDifference(JSON.parse(nearest.inputs), now) ?? { reason: "layer gone" };
    },

    compareShared: () => undefined,

    earlierHash: (ordinal) => hashes.get(ordinal),

    needsInputs: ({ ordinal }, hash) => hashes.get(ordinal) !== hash,

    async remember(step, hash, signal) {
      const { ordinal, title } = step;
      reached.add(ordinal);
      if (hashes.get(ordinal) === hash) return;
      hashes.set(ordinal, hash);
      if (room === 0) return;
      const text = await inputsText(step, session, signal);
      room = Math.max(0, room - text.length);
      if (room === 0) return;
      // Read before this build replaces any, to explain later steps.
      earlier();
      store.set(session, dockerfile, { ordinal, hash, title, inputs: text });
    },

    forgetOthers(stays) {
      const others = Array.from(hashes.keys()).filter((ordinal) => !reached.has(ordinal) && !stays(ordinal));
      if (others.length > 0) store.delete(session, dockerfile, others);
    },
  };
}

/**
 * Returns the step of the latest build to compare this one with: the nearest one of the same text. If there is none, the one at
 * the same place, unless its instruction is still in the Dockerfile and has only moved.
 */
export function findNearest<Entry extends Pick<StepEntry, "ordinal" | "title">>(
  earlier: readonly Entry[],
  { ordinal, title }: { ordinal: number; title: string },
  titles: readonly string[],
): Entry | undefined {
  const distance = (entry: Entry) => Math.abs(entry.ordinal - ordinal);
  const [same] = earlier
    .filter((entry) => entry.title === title)
    .sort((one, other) => distance(one) - distance(other));
  return same ?? earlier.find((entry) => entry.ordinal === ordinal && !titles.includes(entry.title));
}
