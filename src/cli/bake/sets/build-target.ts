import { AbandonedError } from "../../../builder/events.ts";
import { steadyTime } from "../../../clock.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Progress } from "../../../terminal/progress.ts";
import { performBuild } from "../../builds/perform-build.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import { startRecording } from "../../builds/recording/recording.ts";
import type { Surroundings } from "../../command-line/command.ts";
import type { TargetRequests } from "../keys/content-key-requests.ts";
import { isDroppable } from "../keys/key-use.ts";
import type { ResolvedTarget } from "../resolve.ts";
import type { LastOutput } from "./last-output.ts";
import { isolated } from "./shared-builds.ts";
import type { FinishedTarget } from "./target-outcome.ts";

interface TargetBuilds {
  requests: TargetRequests;
  together: BuildsTogether;
  lastOutput: LastOutput;
  /** True if the results need the steps, which for thousands of targets would fill the memory. */
  keepsSteps: boolean;
  /** True if a failure of one target does not stop the others. */
  keepsGoing: boolean;
}

/** Builds a target. Returns how it has ended, a failure too. */
export async function buildTarget(
  target: ResolvedTarget,
  display: Progress,
  { requests, together, lastOutput, keepsSteps, keepsGoing }: TargetBuilds,
  { runtime: { clock } }: Surroundings,
): Promise<FinishedTarget> {
  const since = steadyTime(clock);
  const isDropped = requests.dropped !== undefined && isDroppable(target);
  let known: Pick<FinishedTarget, "key" | "record" | "mask"> = {};
  const ended = (end: FinishedTarget["end"]): FinishedTarget => {
    const seconds = (steadyTime(clock) - since) / 1000;
    return { target, end, seconds, endedAt: clock.now(), ...known, isDropped };
  };
  const scope = keepsGoing ? isolated(together) : undefined;
  try {
    const own = { ...(await requests.requestOf(target)), log: display.log };
    const recording = startRecording(own, { isBaked: true });
    known = { key: own.keyed?.key, mask: recording.mask };
    const watched = lastOutput.watch(display, recording.mask);
    const shared = scope?.together ?? together;
    const result = await performBuild(watched, own, undefined, shared, recording).finally(() => {
      known = { ...known, record: recording.read()?.record };
    });
    const { printsImage: _, buildx: __, ...finished } = result;
    display.emit({ type: "finished", result: finished });
    await requests.dropped?.end(target, result, isDroppable(target));
    return ended({ status: "built", result: keepsSteps ? result : { ...result, steps: [] } });
  } catch (error) {
    const isCancelled = error instanceof AbandonedError || failureOf(error).kind === "interrupted";
    return ended({ status: isCancelled ? "cancelled" : "failed", error });
  } finally {
    scope?.release();
  }
}
