import { availableParallelism } from "node:os";
import type { FoundCommit } from "../../../builder/addresses/repository-address.ts";
import { createCompanions } from "../../../builder/build.ts";
import { AbandonedError } from "../../../builder/events.ts";
import { steadyTime } from "../../../clock.ts";
import type { BoughError } from "../../../errors.ts";
import type { LayerBlob } from "../../../image/layer-header.ts";
import { createSingleFlight } from "../../../once.ts";
import { childOf } from "../../../service/http/deadline.ts";
import { createSlots } from "../../../slots.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Progress } from "../../../terminal/progress.ts";
import { createCommandCaches } from "../../builds/build-cache.ts";
import { type ChosenService, connectTo } from "../../builds/build-services.ts";
import { readProgressMode } from "../../builds/options/result-definitions.ts";
import { type Performed, performBuild } from "../../builds/perform-build.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import { startRecording } from "../../builds/recording.ts";
import type { Invocation } from "../../command-line/command.ts";
import { defaultJobs } from "../../service/choice.ts";
import type { ExistingTarget } from "../keys/existing-targets.ts";
import { isDroppable, prepareRequests, tagsOf } from "../keys/keyed-requests.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { createTargetDisplays } from "../target-progress.ts";
import { type ImageOf, placeholder, withTarget } from "../target-request.ts";
import { type FailedTarget, failureOfAll, listed } from "./failed-targets.ts";
import { createLastOutput } from "./last-output.ts";
import type { EndedTarget, FailureDetails, TargetEnd } from "./target-end.ts";

/** A target whose image was in its registry. */
export interface SkippedTarget extends ExistingTarget {
  tags: readonly string[];
}

export type Built = Performed;

export interface BuildAll {
  progress: Progress;
  /** Gets the results of the targets that are built. */
  results: Map<string, Built>;
  /** Gets those that were not built, because of `--skip-existing`. */
  skipped: Map<string, SkippedTarget>;
  /** `--jobs`. */
  jobs: number | undefined;
  /** True to build all targets that can be built after one has failed. */
  keepsGoing: boolean;
  /** True if the results are to have the steps: of thousands of targets they fill the memory. */
  keepsSteps: boolean;
  signers: BuildsTogether["signers"];
  /** Called when a target has ended. */
  onEnd(ended: EndedTarget, details: FailureDetails): void;
}

/** More would only wait for each other, and each holds its files, its events and a row of the display. */
const minTargetsAtOnce = 16;
const targetsPerJob = 4;

/**
 * Builds each target once those that it needs are built. The first failure stops the others, or, with `keepsGoing`, only those that
 * are made of it: then the failures are returned when all have ended.
 */
export async function buildAll(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { progress, results, skipped, jobs: given, keepsGoing, keepsSteps, signers, onEnd }: BuildAll,
  asked: Invocation,
): Promise<BoughError | undefined> {
  // What several targets have in common is sent to their registry once.
  const pushes = createSingleFlight<LayerBlob>({ keeps: true });
  const invocation = { ...asked, runtime: { ...asked.runtime, pushes } };
  const { runtime } = invocation;
  const { clock } = runtime;
  const stopping = new AbortController();
  const signal = AbortSignal.any([runtime.signal, stopping.signal]);
  await using connections = new AsyncDisposableStack();
  const caches = connections.use(createCommandCaches(progress.log));
  const services = new Map<string | undefined, ReturnType<BuildsTogether["connectTo"]>>();
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const connect = async (service: ChosenService) => {
    const jobs = given ?? defaultJobs(runtime, service.globals);
    const own = { runtime: { ...runtime, signal }, log: progress.log };
    const connection = connections.use(await connectTo(service, own));
    return { connection, companions: createCompanions(jobs, { keepsLayers: true, repositories }) };
  };
  const together: BuildsTogether = {
    ...{ signal, caches, signers, sessions: new Set(), tables: new Map(), directories: new Map() },
    writesMetadata: invocation.values.text("metadata-file") !== undefined,
    connectTo(service) {
      // What names it.
      const profile = service.option === undefined ? undefined : service.globals.profile;
      return services.getOrInsertComputed(profile, () => connect(service));
    },
    stop: (reason) => stopping.abort(reason),
  };
  const mode = readProgressMode(invocation.values);
  const displayOf = createTargetDisplays(progress, ["json", "rawjson"].includes(mode));
  // As in buildx, whose statuses name targets only if there are several.
  const isAlone = mode === "rawjson" && targets.size === 1;
  const begun = new Set<string>();
  const failures: unknown[] = [];
  const failed: FailedTarget[] = [];
  /** Why targets are not built, their own failure or that of one that they are made of. */
  const reasons = new Map<string, unknown>();
  const places = createSlots(Math.max(minTargetsAtOnce, targetsPerJob * (given ?? availableParallelism())));
  const lastOutput = createLastOutput();
  const imageOf: ImageOf = (name) => results.get(name) ?? placeholder;
  const { connectTo: connected } = together;
  const surroundings = { imageOf, connectTo: connected, log: progress.log, signal };
  const requests = await prepareRequests(targets, surroundings, invocation);

  async function build(target: ResolvedTarget): Promise<void> {
    await Promise.all(target.needs.map((name) => building.get(name)));
    if (signal.aborted) return;
    if (requests.skipped.has(target.name)) return skip(target);
    const needs = target.needs.filter((name) => !results.has(name));
    if (needs.length > 0) return block(target, needs);
    const leave = await places.take(signal).catch(() => undefined);
    if (leave === undefined) return;
    try {
      await perform(target);
    } finally {
      leave();
    }
  }

  async function perform(target: ResolvedTarget): Promise<void> {
    const { name } = target;
    begun.add(name);
    const since = steadyTime(clock);
    let mask = (text: string) => text;
    let record: EndedTarget["record"];
    let key: string | undefined;
    const end = (how: TargetEnd) =>
      onEnd(
        {
          ...{ target, end: how, seconds: (steadyTime(clock) - since) / 1000, endedAt: clock.now() },
          ...{ key, record, isDropped: requests.dropped !== undefined && isDroppable(target) },
        },
        { mask, outputOf: lastOutput.of },
      );
    const scope = keepsGoing ? alone(together) : undefined;
    try {
      const display = isAlone ? progress : displayOf(name);
      const own = { ...(await requests.requestOf(target)), log: display.log };
      key = own.keyed?.key;
      const recording = startRecording(own, { isBaked: true });
      mask = recording.mask;
      const watched = lastOutput.watch(display, mask);
      const result = await performBuild(
        watched,
        own,
        undefined,
        scope?.together ?? together,
        recording,
      ).finally(() => {
        record = recording.read()?.record;
      });
      results.set(name, keepsSteps ? result : { ...result, steps: [] });
      const { printsImage: _, buildx: __, ...finished } = result;
      display.emit({ type: "finished", result: finished });
      await requests.dropped?.end(target, result, isDroppable(target));
      end({ status: "built", result });
    } catch (error) {
      // Cancelled because another target failed: not reported as a failure.
      const isOwn = !(error instanceof AbandonedError);
      const isCancelled = !isOwn || failureOf(error).kind === "interrupted";
      if (keepsGoing && !isCancelled) {
        reasons.set(name, error);
        failed.push({ target, message: failureOf(withTarget(error, target)).message });
      } else {
        if (isOwn) failures.push(withTarget(error, target));
        stopping.abort(new AbandonedError());
      }
      end({ status: isCancelled ? "cancelled" : "failed", error });
    } finally {
      scope?.release();
    }
  }

  /** Ends a target whose image is in its registry, or that only such targets need. */
  function skip(target: ResolvedTarget): void {
    const { name } = target;
    const existing = requests.skipped.get(name);
    if (existing === undefined) return;
    const { key, digest } = existing;
    skipped.set(name, { key, digest, tags: tagsOf(target, key) });
    displayOf(name).log.info(`already in the registry, as ${digest}: it is not built`);
    onEnd(
      { target, key, end: { status: "skipped", digest }, seconds: 0, endedAt: clock.now() },
      { mask: (text) => text, outputOf: lastOutput.of },
    );
  }

  /** Ends a target that is made of one that was not built. */
  function block(target: ResolvedTarget, needs: readonly string[]): void {
    const error = needs.map((name) => reasons.get(name)).find((reason) => reason !== undefined);
    reasons.set(target.name, error);
    failed.push({ target, needs });
    onEnd(
      { target, end: { status: "blocked", needs, error }, seconds: 0, endedAt: clock.now() },
      { mask: (text) => text, outputOf: lastOutput.of },
    );
  }

  // Each target comes after those that it needs.
  const building = new Map<string, Promise<void>>();
  for (const [name, target] of targets) building.set(name, build(target));
  await Promise.all(building.values());
  if (!runtime.signal.aborted) await caches.write();
  if (keepsGoing) runtime.signal.throwIfAborted();
  if (failed.length > 0) return failureOfAll(failed, targets);
  if (failures.length > 0 && !runtime.signal.aborted)
    reportState([...targets.keys()], results, begun, progress);
  for (const failure of failures) throw failure;
  runtime.signal.throwIfAborted();
  return undefined;
}

/** Returns the same for a build whose failed stage ends no other build. */
function alone(together: BuildsTogether): { together: BuildsTogether; release(): void } {
  const { signal, abort, release } = childOf(together.signal);
  return {
    together: {
      ...together,
      signal,
      stop: abort,
      async connectTo(service) {
        const { connection, companions } = await together.connectTo(service);
        return { connection: { ...connection, service: connection.serviceFor(signal) }, companions };
      },
    },
    release,
  };
}

/** Says what was done before a target failed. */
function reportState(
  names: readonly string[],
  results: ReadonlyMap<string, unknown>,
  begun: ReadonlySet<string>,
  { log }: Progress,
): void {
  const built = names.filter((name) => results.has(name));
  const ended = names.filter((name) => begun.has(name) && !results.has(name));
  const left = names.filter((name) => !begun.has(name));
  const parts = [
    `built: ${listed(built) || "none"}`,
    `failed or cancelled: ${listed(ended)}`,
    ...(left.length === 0 ? [] : [`not begun: ${listed(left)}`]),
  ];
  log.info(parts.join("; "));
}
