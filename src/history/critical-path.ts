import { blockerOf, findCriticalPath, type StepSpan } from "../terminal/timeline/spans.ts";
import type { BuildRecord, BuildStep } from "./build-record.ts";

type StepOfSpan = StepSpan & { of: BuildStep };

/** The steps that determine a build's duration. */
export interface CriticalPath {
  /** The steps in order: each waited for the one before. Making any other step faster does not shorten the build. */
  steps: readonly BuildStep[];
  slowest: BuildStep | undefined;
  /** Returns the step whose result or slot another one waited for. */
  waitedFor(step: BuildStep): BuildStep | undefined;
}

export function criticalPathOf({ steps }: Pick<BuildRecord, "steps">): CriticalPath {
  const spans = steps.map(
    (of): StepOfSpan => ({
      ...of,
      of,
      name: of.title,
      details: { failed: of.outcome === "failed" },
      inStage: of.inStage ?? undefined,
    }),
  );
  const spanOf = new Map(spans.map((span) => [span.of, span]));
  const path = findCriticalPath(spans).map(({ of }) => of);
  return {
    steps: path,
    slowest: path.toSorted((one, other) => other.end - other.start - (one.end - one.start))[0],
    waitedFor(step) {
      const span = spanOf.get(step);
      return span && blockerOf(span, spans)?.of;
    },
  };
}
