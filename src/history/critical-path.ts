import { blockerOf, findCriticalPath, type StepSpan } from "../terminal/timeline/spans.ts";
import type { BuildRecord, BuildStep } from "./build-record.ts";

type StepOfSpan = StepSpan & { of: BuildStep };

/** What determined how long a build took. */
export interface CriticalPath {
  /** In order: each waited for the one before. Making any other step faster does not shorten the build. */
  steps: readonly BuildStep[];
  slowest: BuildStep | undefined;
  /** Returns the step whose result or slot another one waited for. */
  waitedFor(step: BuildStep): BuildStep | undefined;
}

export function criticalPathOf({ steps }: Pick<BuildRecord, "steps">): CriticalPath {
  const spans = steps.map(
    (of): StepOfSpan => ({ ...of, of, name: of.title, details: {}, inStage: of.inStage ?? undefined }),
  );
  const ofSpan = (span: StepSpan | undefined) => spans.find((each) => each === span)?.of;
  const path = findCriticalPath(spans).flatMap((span) => ofSpan(span) ?? []);
  return {
    steps: path,
    slowest: path.toSorted((one, other) => other.end - other.start - (one.end - one.start))[0],
    waitedFor(step) {
      const span = spans.find(({ of }) => of === step);
      return span && ofSpan(blockerOf(span, spans));
    },
  };
}
