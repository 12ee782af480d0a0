import { availableParallelism } from "node:os";
import { AbandonedError } from "../../../builder/events.ts";
import type { BoughError } from "../../../errors.ts";
import type { LayerBlob } from "../../../image/layer-header.ts";
import { createSingleFlight } from "../../../once.ts";
import { createSemaphore } from "../../../semaphore.ts";
import type { Progress } from "../../../terminal/progress.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import type { RequestDependencies, TargetRequests } from "../keys/content-key-requests.ts";
import { tagsWithKey, usesKeys } from "../keys/key-use.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { withTarget } from "../target-error.ts";
import { createTargetDisplays } from "../target-progress.ts";
import { buildOf, placeholder } from "../target-request.ts";
import { buildTarget } from "./build-target.ts";
import { failureOfAll, listed } from "./failed-targets.ts";
import { createLastOutput, type LastOutput } from "./last-output.ts";
import { openSharedBuilds } from "./shared-builds.ts";
import type { FinishedTarget, TargetOutcome, TargetOutcomes } from "./target-outcome.ts";

export interface BuildAll {
  progress: Progress;
  /** `--jobs`. */
  jobs: number | undefined;
  /** True to build all targets that can be built after one has failed. */
  keepsGoing: boolean;
  /** True if the results need the steps, which for thousands of targets would fill the memory. */
  keepsSteps: boolean;
  signers: BuildsTogether["signers"];
  /** Called when a target has ended. */
  onEnd(ended: FinishedTarget, outputOf: LastOutput["of"]): void;
}

/** Limits of concurrent targets. More would only wait for slots, and each holds its files, its events and a row of the display. */
const minConcurrentTargets = 16;
const targetsPerJob = 4;
/** With `--drop-pushed`, one target is built while another is pushed, so that pushed layers leave the disk before more are written. */
const droppedTargetsPerJob = 2;

/**
 * Builds each target once those that it needs are built. The first failure stops the other targets, and is thrown. With `keepsGoing` it
 * stops only the targets that need the failed one, and the failures are returned when all targets have ended.
 */
export async function buildAll(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { progress, jobs, keepsGoing, keepsSteps, signers, onEnd }: BuildAll,
  asked: BakeInvocation,
): Promise<{ ends: TargetOutcomes; failure: BoughError | undefined }> {
  // What several targets have in common is sent to their registry once.
  const pushes = createSingleFlight<LayerBlob>({ keeps: true });
  const invocation = { ...asked, runtime: { ...asked.runtime, pushes } };
  const { runtime } = invocation;
  await using shared = openSharedBuilds({ log: progress.log, jobs, signers }, invocation);
  const { together } = shared;
  const { signal, stop } = together.connections;
  const displayOf = displaysFor(targets, progress, invocation);
  const ends = new Map<string, TargetOutcome>();
  const lastOutput = createLastOutput();
  const imageOf = (name: string) => {
    const end = ends.get(name);
    return end?.status === "built" ? end.result : placeholder;
  };
  const requests = await prepareRequests(targets, { imageOf, together, log: progress.log }, invocation);
  const slots = createSemaphore(
    requests.dropped !== undefined && jobs !== undefined
      ? droppedTargetsPerJob * jobs
      : Math.max(minConcurrentTargets, targetsPerJob * (jobs ?? availableParallelism())),
  );
  const builds = { requests, together, lastOutput, keepsSteps, keepsGoing };

  function end(ended: FinishedTarget): void {
    ends.set(ended.target.name, ended.end);
    onEnd(ended, lastOutput.of);
  }

  function endUnbuilt(target: ResolvedTarget, how: TargetOutcome): void {
    const key = how.status === "skipped" ? how.key : undefined;
    end({ target, end: how, key, seconds: 0, endedAt: runtime.clock.now() });
  }

  async function build(target: ResolvedTarget): Promise<void> {
    await Promise.all(target.needs.map((name) => building.get(name)));
    if (signal.aborted) return;
    if (requests.skipped.has(target.name)) return skip(target);
    const needs = target.needs.filter((name) => ends.get(name)?.status !== "built");
    if (needs.length > 0) {
      const reasons = needs.flatMap((name) => errorIn(ends.get(name)) ?? []);
      return endUnbuilt(target, { status: "blocked", needs, error: reasons[0] });
    }
    const release = await slots.acquire(signal).catch(() => undefined);
    if (release === undefined) return;
    try {
      const ended = await buildTarget(target, displayOf(target.name), builds, invocation);
      const { status } = ended.end;
      if (status === "cancelled" || (status === "failed" && !keepsGoing)) stop(new AbandonedError());
      end(ended);
    } finally {
      release();
    }
  }

  /** Ends a target whose image is in its registry. */
  function skip(target: ResolvedTarget): void {
    const existing = requests.skipped.get(target.name);
    if (existing === undefined) return;
    displayOf(target.name).log.info(`already in the registry, as ${existing.digest}: it is not built`);
    endUnbuilt(target, { status: "skipped", ...existing, tags: tagsWithKey(target, existing.key) });
  }

  // Each target comes after those that it needs.
  const building = new Map<string, Promise<void>>();
  for (const [name, target] of targets) building.set(name, build(target));
  await Promise.all(building.values());
  if (!runtime.signal.aborted) await together.caches.write();
  if (keepsGoing) runtime.signal.throwIfAborted();
  const failure = keepsGoing ? failureOfAll(targets, ends) : undefined;
  if (failure === undefined) throwFirst(targets, ends, progress, runtime.signal);
  return { ends, failure };
}

/** Returns the requests of targets. The module for content keys is loaded only if they are used. */
async function prepareRequests(
  targets: ReadonlyMap<string, ResolvedTarget>,
  found: RequestDependencies,
  invocation: BakeInvocation,
): Promise<TargetRequests> {
  if (usesKeys(targets, invocation))
    return (await import("../keys/content-key-requests.ts")).prepareContentKeyRequests(
      targets,
      found,
      invocation,
    );
  return {
    requestOf: async (target) => buildOf(target, found.imageOf, invocation),
    skipped: new Map(),
    dropped: undefined,
  };
}

function displaysFor(
  targets: ReadonlyMap<string, ResolvedTarget>,
  progress: Progress,
  { options: { progress: mode } }: BakeInvocation,
): (target: string) => Progress {
  // As in buildx, whose statuses name targets only if there are several.
  if (mode === "rawjson" && targets.size === 1) return () => progress;
  return createTargetDisplays(progress, mode === "json" || mode === "rawjson");
}

function errorIn(end: TargetOutcome | undefined): unknown {
  return end !== undefined && "error" in end ? end.error : undefined;
}

/** Logs the state of all targets and throws the first failure of one; without any, throws if the bake was interrupted. */
function throwFirst(
  targets: ReadonlyMap<string, ResolvedTarget>,
  ends: TargetOutcomes,
  progress: Progress,
  signal: AbortSignal,
): void {
  for (const [name, end] of ends) {
    const target = targets.get(name);
    const error = errorIn(end);
    // Cancelled because another target failed: not reported as a failure.
    if (target === undefined || error === undefined || error instanceof AbandonedError) continue;
    if (!signal.aborted) reportState([...targets.keys()], ends, progress);
    throw withTarget(error, target);
  }
  signal.throwIfAborted();
}

/** Logs which targets are built, and which are not. */
function reportState(names: readonly string[], ends: TargetOutcomes, { log }: Progress): void {
  const having = (...all: (TargetOutcome["status"] | undefined)[]) =>
    names.filter((name) => all.includes(ends.get(name)?.status));
  const [skipped, left] = [having("skipped"), having(undefined)];
  const parts = [
    `built: ${listed(having("built")) || "none"}`,
    ...(skipped.length === 0 ? [] : [`already in the registry: ${listed(skipped)}`]),
    `failed or cancelled: ${listed(having("failed", "cancelled", "blocked"))}`,
    ...(left.length === 0 ? [] : [`not begun: ${listed(left)}`]),
  ];
  log.info(parts.join("; "));
}
