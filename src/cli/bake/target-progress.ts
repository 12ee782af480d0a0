import type { BuildEvent } from "../../builder/events.ts";
import { prefixLog } from "../../terminal/log.ts";
import type { Progress } from "../../terminal/progress.ts";

/**
 * Returns a display for each of several builds that share one. Their steps are numbered in one sequence, which the display needs to
 * distinguish them, and their stages are named `TARGET` or `TARGET STAGE`, as in docker buildx bake. With `isForPrograms`, events keep
 * their own numbers and names and add the target's.
 */
export function createTargetDisplays(
  progress: Progress,
  isForPrograms: boolean,
): (target: string) => Progress {
  const numbers = new Map<string, number>();
  const numberOf = (key: string) => numbers.getOrInsert(key, numbers.size + 1);
  return (target) => {
    let stages = 1;
    const emit = (event: BuildEvent) => {
      if (isForPrograms || event.step === undefined) return progress.emit({ ...event, target });
      const { stage, step } = event;
      stages = Math.max(stages, (stage?.index ?? 0) + 1);
      const isOnly = stages === 1 && (stage?.name ?? null) === null;
      const name = isOnly || stage === null ? target : `${target} ${stage.name ?? `stage-${stage.index}`}`;
      const placed = {
        ...event,
        target,
        stage: { index: numberOf(`${target} stage ${stage?.index}`), name },
        step: numberOf(`${target} step ${step}`),
      };
      progress.emit(
        placed.type === "step"
          ? { ...placed, inStage: placed.inStage ?? { step, steps: placed.steps } }
          : placed,
      );
    };
    return {
      log: prefixLog(progress.log, target),
      emit,
      fail: progress.fail,
      close: progress.close,
    };
  };
}
