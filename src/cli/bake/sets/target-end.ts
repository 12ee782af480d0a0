/** How a target has ended, and the line of `--results` about it. */
import { FailedStepError } from "../../../builder/operations/failed-step.ts";
import { DockerfileError } from "../../../dockerfile/problems/problem.ts";
import { causeOf } from "../../../errors.ts";
import { type BuildRecord, countCached } from "../../../history/build-record.ts";
import type { Message } from "../../../messages/wording.ts";
import { failureOf } from "../../../terminal/failure.ts";
import type { Performed } from "../../builds/perform-build.ts";
import { tagsOf } from "../keys/key-use.ts";
import type { ResolvedTarget } from "../resolve.ts";
import type { LastOutput } from "./last-output.ts";

/** `blocked`: a target that it is made of was not built. `cancelled`: something else ended it. */
export type TargetEnd =
  | { status: "built"; result: Performed }
  /** Its image was in its registry. */
  | { status: "skipped"; key: string; digest: string; tags: readonly string[] }
  | { status: "failed" | "cancelled"; error: unknown }
  /** `error`: why the other one was not built. */
  | { status: "blocked"; needs: readonly string[]; error: unknown };

/** How targets have ended, by name, in the order in which they did. */
export type TargetEnds = ReadonlyMap<string, TargetEnd>;

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
  /** Masks the secrets of its build. */
  mask?: (text: string) => string;
}

/** Returns a line of `--results` as data. The keys are always the same. */
export function resultOf(
  { target, end, seconds, key, record, endedAt, mask = (text) => text, isDropped = false }: EndedTarget,
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
    tags: result?.tags ?? tagsOf(target, key),
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
  const hint = hintOf(error);
  return {
    code: kind,
    message: mask(message),
    hint: hint === undefined ? null : mask(String(hint)),
    file: place?.path ?? null,
    line: problem?.culprit?.line ?? problem?.range.start ?? null,
    output: (step && outputOf(step.operation)) ?? null,
  };
}

/** Returns the advice of one of several failures: without that of a failed step's session, which has the latest of them. */
export function hintOf(error: unknown): Message | undefined {
  const { hint } = causeOf(error, FailedStepError) ?? failureOf(error);
  return hint;
}
