import { realpathSync } from "node:fs";
import type { BuildResult } from "../../../builder/result.ts";
import type { Invocation } from "../../command-line/command.ts";
import { createProgress } from "../progress.ts";
import { printImage } from "../result.ts";
import { identifyBuild } from "./identity.ts";
import { areUnchanged, lookAt, lookAtLog, lookBehind } from "./observed-files.ts";
import { type RememberedBuild, readRememberedBuild } from "./remembered-build.ts";

/**
 * Tells what the last build of these words told, where that had nothing to do and nothing has changed since: no file that it
 * looked at, nothing that bough or the engine knows, no answer of the service. False where it is to be done after all; nothing
 * has been told then.
 */
export async function repeatBuild(invocation: Invocation): Promise<boolean> {
  const startedAt = invocation.runtime.clock.now();
  const build = await findUnchanged(invocation, startedAt);
  if (build === undefined || invocation.runtime.signal.aborted) return false;
  await tellAgain(build, startedAt, invocation);
  return true;
}

async function findUnchanged(invocation: Invocation, now: number): Promise<RememberedBuild | undefined> {
  try {
    const identity = identifyBuild(invocation);
    const build = identity === undefined ? undefined : readRememberedBuild(identity, now);
    if (identity === undefined || build === undefined || !hasUnchangedFiles(build)) return undefined;
    if (build.questions.length === 0) return build;
    // Loaded where there is a service: the engine knows nothing that its database does not tell.
    const { areAnsweredAlike } = await import("./repeat-questions.ts");
    return (await areAnsweredAlike(build.questions, identity, invocation)) ? build : undefined;
  } catch {
    // What is wrong will be said by the build.
    return undefined;
  }
}

function hasUnchangedFiles({ context, inputs, databases, logs, files }: RememberedBuild): boolean {
  return (
    areUnchanged(databases, lookAt) &&
    areUnchanged(logs, lookAtLog) &&
    areUnchanged(inputs, lookBehind) &&
    realpathSync(context.path) === context.realPath &&
    areUnchanged(files, lookAt)
  );
}

async function tellAgain({ told }: RememberedBuild, startedAt: number, invocation: Invocation) {
  const { clock } = invocation.runtime;
  const progress = await createProgress(invocation);
  let result: BuildResult | undefined;
  for (const one of told) {
    if ("info" in one) progress.log.info(one.info);
    else if (one.type === "warning") progress.emit({ ...one, line: one.line ?? undefined });
    else if (one.type === "step-end") progress.emit({ ...one, record: { ...one.record, seconds: 0 } });
    else if (one.type === "finished") {
      result = { ...one.result, seconds: (clock.now() - startedAt) / 1000 };
      progress.emit({ ...one, result });
    } else progress.emit(one);
  }
  progress.close();
  if (result !== undefined) printImage(invocation, result);
}
