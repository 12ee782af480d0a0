import { relative } from "node:path";
import { titleOf } from "../interpreter/location.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { Explanation } from "./explain.ts";
import type { RememberedStep } from "./step-memory.ts";

/** For `--explain`: says why a step that is about to be run is not taken from the cache. */
export function explainStep(
  { title, line }: { title: string; line: number },
  step: RememberedStep,
  stage: StageState,
  build: BuildJob,
): void {
  if (!build.memory.explains) return;
  build.emit({ type: "explained", title, line, explanation: explain(step, stage, build) });
}

function explain(step: RememberedStep, stage: StageState, build: BuildJob): Explanation {
  if (!build.useCache) return { reason: "--no-cache" };
  const titles = build.dockerfile.instructions.filter(({ name }) => name === "RUN").map(titleOf);
  const explanation = build.memory.explain(step, titles);
  switch (explanation.reason) {
    case "file": {
      const entry = stage.staged.get(explanation.path);
      if (entry?.type !== "file" || entry.content.kind !== "local") return explanation;
      return { ...explanation, source: relative(build.context.realPath, entry.content.absolutePath) };
    }
    case "parent": {
      const title = build.layers.titleOf(explanation.now);
      return title === undefined ? explanation : { ...explanation, title };
    }
    default:
      return explanation;
  }
}
