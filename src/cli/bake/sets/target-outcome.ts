/** The outcome of a target, and the line of `--results` about it. */
import { FailedStepError } from "../../../builder/operations/failed-step.ts";
import { DockerfileError } from "../../../dockerfile/problems/problem.ts";
import { causeOf } from "../../../errors.ts";
import { type BuildRecord, countCached } from "../../../history/build-record.ts";
import type { Message } from "../../../messages/wording.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Performed } from "../../builds/perform-build.ts";
import { tagsWithKey } from "../keys/key-use.ts";
import type { ResolvedTarget } from "../resolve.ts";
import type { LastOutput } from "./last-output.ts";

/** How a target has ended. `blocked`: a target that it needs was not built. `cancelled`: another failure or an interrupt ended it. */
export type TargetOutcome =
  | { status: "built"; result: Performed }
  /** Its image was in its registry. */
  | { status: "skipped"; key: string; digest: string; tags: readonly string[] }
  | { status: "failed" | "cancelled"; error: unknown }
  /** `error`: why a target of `needs` was not built. */
  | { status: "blocked"; needs: readonly string[]; error: unknown };

/** Outcomes by target, in the order in which they ended. */
export type TargetOutcomes = ReadonlyMap<string, TargetOutcome>;

/** A target that has ended. */
export interface FinishedTarget {
  target: ResolvedTarget;
  end: TargetOutcome;
  seconds: number;
  /** The content key; `undefined` if no option or tag needs it. */
  key?: string | undefined;
  /** The record of the build; `undefined` if the build has not started. */
  record?: BuildRecord | undefined;
  /** True with `--drop-pushed` for an image that only registries keep. */
  isDropped?: boolean;
  /** Milliseconds since the epoch. */
  endedAt: number;
  /** Masks the secrets of its build. */
  mask?: (text: string) => string;
}

/** Returns a line of `--results`. */
export function resultOf(
  { target, end, seconds, key, record, endedAt, mask = (text) => text, isDropped = false }: FinishedTarget,
  outputOf: LastOutput["of"],
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
    tags: result?.tags ?? tagsWithKey(target, key),
    digest: exported[0]?.descriptor.digest ?? ofSkipped ?? null,
    key: key ?? null,
    seconds: Math.round(seconds * 1000) / 1000,
    ...{ cached, run: layers - cached },
    pushedBytes: exported.reduce((bytes, { sentBytes = 0 }) => bytes + sentBytes, 0),
    needs: end.status === "blocked" ? end.needs : [],
    error: "error" in end ? describeError(end.error, mask, outputOf) : null,
    build: record?.id ?? null,
    origin: target.origin,
    endedAt: new Date(endedAt).toISOString(),
  };
}

function describeError(
  error: unknown,
  mask: (text: string) => string,
  outputOf: LastOutput["of"],
): Record<string, unknown> {
  const { message, kind } = failureOf(error);
  const place = causeOf(error, DockerfileError);
  const [problem] = place?.problems ?? [];
  const step = causeOf(error, FailedStepError);
  const hint = failureHint(error);
  return {
    code: kind,
    message: mask(message),
    hint: hint === undefined ? null : mask(String(hint)),
    file: place?.path ?? null,
    line: problem?.culprit?.line ?? problem?.range.start ?? null,
    output: (step && outputOf(step.operation)) ?? null,
  };
}

/** Returns the hint of one of several failures: of a failed step its own, as hints about the session hold for the last failure only. */
export function failureHint(error: unknown): Message | undefined {
  const { hint } = causeOf(error, FailedStepError) ?? failureOf(error);
  return hint;
}
