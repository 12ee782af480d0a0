import { relative } from "node:path";
import { pathWithin } from "../../context/file-system/display-path.ts";
import type { Explanation } from "../cache/explain.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import type { BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { StageState } from "../state/state.ts";
import { layerMakers, type Step } from "./step.ts";

/** Reports, for `--explain`, why a step that is about to run is not taken from the cache. */
export function explainStep(
  { title, line, source }: Pick<Step, "title" | "line" | "source">,
  step: RememberedStep,
  hash: string,
  stage: StageState,
  build: BuildJob,
): void {
  const { memory } = build.services;
  const { uncachedStages } = build.asked;
  const { useCache } = build;
  if (!memory.explains) return;
  if (!useCache) {
    const reason = uncachedStages.length > 0 ? "--no-cache-filter" : "--no-cache";
    build.emit({ type: "explained", title, line, explanation: { reason } });
    return;
  }
  const titles = layerMakers(build.asked.dockerfile, build.asked.dialect).map(titleOf);
  const withPath = (explanation: Explanation): Explanation =>
    explanation.reason === "source" && source?.changed !== undefined
      ? { ...explanation, path: source.changed }
      : explanation;
  const explanation = withPath(withNames(memory.explain(step, titles), stage, build));
  const found = memory.compareShared(step, hash, titles);
  const shared = found && { scope: found.scope, explanation: withNames(found.difference, stage, build) };
  build.emit({ type: "explained", title, line, explanation, ...(shared && { shared }) });
}

/** Adds the path in the context to a file's difference, and the instruction's title to a parent's. */
function withNames(explanation: Explanation, stage: StageState, build: BuildJob): Explanation {
  switch (explanation.reason) {
    case "file": {
      const entry = stage.staged.get(explanation.path);
      if (entry?.type !== "file" || entry.content.kind !== "local") return explanation;
      const source = sourceOf(entry.content.absolutePath, build);
      return source === undefined ? explanation : { ...explanation, source };
    }
    case "parent": {
      const title = build.services.layers.titleOf(explanation.now);
      return title === undefined ? explanation : { ...explanation, title };
    }
    default:
      return explanation;
  }
}

/**
 * Returns a file's path, relative to the build context. Returns `undefined` for a file of a `--build-context` that was fetched: the
 * user does not know the place where bough keeps it.
 */
function sourceOf(path: string, { source, asked }: BuildJob): string | undefined {
  const directories = [source.context];
  for (const each of asked.contexts.values())
    if (each.kind === "directory" && each.source.kind === "local") directories.push(each.source.context);
  const isGiven = directories.some(({ realPath }) => pathWithin(realPath, path) !== undefined);
  return isGiven ? relative(source.context.realPath, path) : undefined;
}
