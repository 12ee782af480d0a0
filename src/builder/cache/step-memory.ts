import type { StepEntry, StepStore } from "../../store/steps.ts";
import { type Difference, type Explanation, findDifference } from "./explain.ts";
import type { StepInputs } from "./step-inputs.ts";

/** What the latest build of this Dockerfile in this context was made from, and, step by step, what this one is. */
export interface StepMemory {
  /** True: whoever builds wants to hear why a step is not taken from the cache. */
  readonly explains: boolean;
  /** `titles`: of all instructions of the Dockerfile that make a layer. */
  explain(step: RememberedStep, titles: readonly string[]): Explanation;
  /** `hash`: that the step comes to now. In which scope, if any, it was made from something else. */
  compareShared(
    step: RememberedStep,
    hash: string,
    titles: readonly string[],
  ): { scope: string; difference: Difference } | undefined;
  /** Returns whether `remember` asks for what the step was made from. */
  needsInputs(step: Pick<RememberedStep, "ordinal">, hash: string): boolean;
  /** Remembers the step once its layer is there. */
  remember(step: RememberedStep, hash: string): Promise<void>;
  /** Forgets at the end of a build: no later one is compared with a step that this one has not come to. `stays`: by ordinal. */
  forgetOthers(stays: (ordinal: number) => boolean): void;
}

export interface RememberedStep {
  ordinal: number;
  /** The instruction on one line. */
  title: string;
  /** Made when they are needed: most steps are as they were. */
  inputs: () => StepInputs;
  /** The same as JSON, in UTF-8. */
  text: () => Promise<Uint8Array>;
}

/** Bytes kept of all steps of a build: thousands of variables before thousands of RUNs would be stored with each RUN. */
const maxBytes = 64 * 1024 * 1024;

/** `dockerfile`: its absolute path. */
export function createStepMemory(
  store: StepStore,
  { session, dockerfile, explains }: { session: string; dockerfile: string; explains: boolean },
): StepMemory {
  // Read before this build begins to replace it.
  const earlier = explains ? store.list(session, dockerfile) : [];
  const hashes = store.hashes(session, dockerfile);
  const reached = new Set<number>();
  let room = maxBytes;
  return {
    explains,

    explain({ ordinal, inputs }, titles) {
      if (earlier.length === 0) return { reason: "first build" };
      const now = inputs();
      const nearest = findNearest(earlier, { ordinal, title: now.title }, titles);
      if (nearest === undefined) return { reason: "new instruction" };
      return findDifference(JSON.parse(nearest.inputs), now) ?? { reason: "layer gone" };
    },

    compareShared: () => undefined,

    needsInputs: ({ ordinal }, hash) => hashes.get(ordinal) !== hash,

    async remember({ ordinal, title, text: makeText }, hash) {
      reached.add(ordinal);
      if (hashes.get(ordinal) === hash) return;
      hashes.set(ordinal, hash);
      if (room === 0) return;
      const text = await makeText();
      room = Math.max(0, room - text.length);
      if (room > 0) store.set(session, dockerfile, { ordinal, hash, title, inputs: text });
    },

    forgetOthers(stays) {
      const others = Array.from(hashes.keys()).filter((ordinal) => !reached.has(ordinal) && !stays(ordinal));
      if (others.length > 0) store.delete(session, dockerfile, others);
    },
  };
}

/**
 * The step of the latest build that this one is compared with: of the same text, the nearest where there are several;
 * else what stood in its place, unless that instruction is still in the Dockerfile and has only moved.
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
