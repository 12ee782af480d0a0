import { relative } from "node:path";
import { pathWithin } from "../../context/file-system/display-path.ts";
import type { Explanation } from "../cache/step-difference.ts";
import type { StepKey } from "../cache/step-key.ts";
import type { BuildJob } from "../job.ts";
import type { Step } from "./step.ts";

/** The number of files beyond which a miss is only explained on request, because comparing them takes noticeable time. */
const maxRecordedFiles = 10_000;

/** Reports, for `--explain` and for the record of the build, why a step that is about to run is not taken from the cache. */
export async function explainMiss(step: Step, hash: string, build: BuildJob): Promise<void> {
  const { title, line, key } = step;
  const { memory } = build.services;
  const files = key.files.size + (key.mounts?.files.size ?? 0);
  if (!memory.explains && files > maxRecordedFiles) return;
  if (!build.useCache) {
    const reason = build.asked.uncachedStages.length > 0 ? "--no-cache-filter" : "--no-cache";
    build.emit({ type: "explained", title, line, explanation: { reason } });
    return;
  }
  const titles = build.layerTitles();
  const named = withNames(memory.explain(step, titles), key, build);
  const explanation = memory.explains && step.refine ? await step.refine(named) : named;
  const found = memory.explains ? memory.compareShared(step, hash, titles) : undefined;
  const shared = found && { scope: found.scope, explanation: withNames(found.difference, key, build) };
  build.emit({ type: "explained", title, line, explanation, ...(shared && { shared }) });
}

/** Adds the path in the context to a file's difference, and the instruction's title to a parent's. */
function withNames(explanation: Explanation, { files }: StepKey, build: BuildJob): Explanation {
  switch (explanation.reason) {
    case "file": {
      const entry = files.get(explanation.path);
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
