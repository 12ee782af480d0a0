/** How a target has ended, and the line of `--results` about it. */
import { failedStepIn } from "../../../builder/operations/failed-step.ts";
import type { BuildResult } from "../../../builder/result.ts";
import { DockerfileError } from "../../../dockerfile/problems/problem.ts";
import { type BuildRecord, countCached } from "../../../history/build-record.ts";
import { failureOf } from "../../../terminal/failure.ts";
import { tagsOf } from "../keys/keyed-requests.ts";
import type { ResolvedTarget } from "../resolve.ts";

/** Names of how a target ends. `blocked`: a target that it is made of was not built. `cancelled`: something else ended it. */
export type TargetStatus = TargetEnd["status"];

export type TargetEnd =
  | { status: "built"; result: BuildResult }
  | { status: "skipped"; digest: string }
  | { status: "failed" | "cancelled"; error: unknown }
  /** `error`: why the other one was not built. */
  | { status: "blocked"; needs: readonly string[]; error: unknown };

/** What is known of a target that has ended. */
export interface EndedTarget {
  target: ResolvedTarget;
  end: TargetEnd;
  seconds: number;
  /** What all goes into it, as a hash; `undefined` if it was not asked for. */
  key?: string | undefined;
  /** The record of the build; `undefined` if it has not begun. */
  record?: BuildRecord | undefined;
  /** True if only registries keep its image: `--drop-pushed`. */
  isDropped?: boolean;
  /** Milliseconds since the epoch. */
  endedAt: number;
}

/** What a line needs of the surroundings of a failed build. */
export interface FailureDetails {
  /** Masks secrets. */
  mask(text: string): string;
  /** Returns the last output of a command that has failed. */
  outputOf(operation: string): string | undefined;
}

/** Returns a line of `--results` as data. The keys are always the same. */
export function resultOf(
  { target, end, seconds, key, record, endedAt, isDropped = false }: EndedTarget,
  details: FailureDetails,
): Record<string, unknown> {
  const result = end.status === "built" ? end.result : undefined;
  const exported = result?.exported ?? [];
  const { layers, cached } = countCached(record?.steps ?? []);
  const ofSkipped = end.status === "skipped" ? end.digest : undefined;
  return {
    target: target.name,
    status: end.status,
    image: (isDropped ? undefined : result?.image) ?? null,
    ...(result?.platforms && !isDropped && { platforms: result.platforms }),
    tags: result?.tags ?? tagsOf(target, key),
    digest: exported[0]?.descriptor.digest ?? ofSkipped ?? null,
    key: key ?? null,
    seconds: Math.round(seconds * 1000) / 1000,
    ...{ cached, run: layers - cached },
    pushedBytes: exported.reduce((bytes, { sentBytes = 0 }) => bytes + sentBytes, 0),
    needs: end.status === "blocked" ? end.needs : [],
    error: "error" in end ? describeError(end.error, details) : null,
    build: record?.id ?? null,
    origin: target.origin,
    endedAt: new Date(endedAt).toISOString(),
  };
}

function describeError(error: unknown, { mask, outputOf }: FailureDetails): Record<string, unknown> {
  const { message, kind } = failureOf(error);
  const place = findCause(error, (cause) => (cause instanceof DockerfileError ? cause : undefined));
  const [problem] = place?.problems ?? [];
  const step = failedStepIn(error);
  // The advice of a failed step is about the latest one of its session.
  const { hint } = step ?? failureOf(error);
  return {
    code: kind,
    message: mask(message),
    hint: hint === undefined ? null : mask(String(hint)),
    file: place?.path ?? null,
    line: problem?.culprit?.line ?? problem?.range.start ?? null,
    output: (step && outputOf(step.operation)) ?? null,
  };
}

function findCause<Found>(error: unknown, find: (error: Error) => Found | undefined): Found | undefined {
  if (!(error instanceof Error)) return undefined;
  return find(error) ?? findCause(error.cause, find);
}
