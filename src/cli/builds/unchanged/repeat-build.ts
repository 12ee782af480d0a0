import { dirname } from "node:path";
import type { BuildResult } from "../../../builder/result.ts";
import { openBuildContext } from "../../../context/build-context.ts";
import { requireOwnDirectory } from "../../../own-path.ts";
import type { Invocation } from "../../command-line/command.ts";
import { chooseMode, createProgress } from "../progress.ts";
import { printImage } from "../result.ts";
import type { BuildIdentity } from "./identity.ts";
import { areUnchanged, lookAt, lookAtLog, lookBehind } from "./path-states.ts";
import { forgetBuild, type RememberedBuild, readRememberedBuild } from "./remembered-build.ts";

/**
 * Repeats the output of the last identical build, if that had nothing to do and nothing has changed since: no file that it read,
 * no state of bough or the engine, no response of the service. Returns false, without any output, if the build must run.
 */
export async function repeatBuild(identity: BuildIdentity, invocation: Invocation): Promise<boolean> {
  const startedAt = invocation.runtime.clock.now();
  const build = readRememberedBuild(identity, startedAt);
  if (build === undefined || !(await holds(build, identity, invocation))) return false;
  if (invocation.runtime.signal.aborted) return false;
  await tellAgain(build, startedAt, invocation);
  return true;
}

async function holds(
  build: RememberedBuild,
  identity: BuildIdentity,
  invocation: Invocation,
): Promise<boolean> {
  try {
    if (!(await isUnchanged(build, identity))) return false;
    // An impossible mode must be an error before a request sets a tag.
    chooseMode(invocation);
    return await isAnsweredAlike(build, identity, invocation);
  } catch {
    // The build itself reports the error.
    return false;
  }
}

async function isUnchanged(
  { context, inputs, known, logs, files }: RememberedBuild,
  { databases }: BuildIdentity,
): Promise<boolean> {
  for (const path of databases) requireOwnDirectory(dirname(path), { isLinkable: true });
  return (
    areUnchanged(known, lookAt) &&
    areUnchanged(logs, lookAtLog) &&
    areUnchanged(inputs, lookBehind) &&
    (await openBuildContext(context.path, "/")).realPath === context.realPath &&
    areUnchanged(files, (path) => lookAt(path === "" ? context.realPath : `${context.realPath}/${path}`))
  );
}

async function isAnsweredAlike(
  { questions }: RememberedBuild,
  identity: BuildIdentity,
  invocation: Invocation,
): Promise<boolean> {
  if (questions.length === 0) return true;
  let isAlike = false;
  try {
    // Loaded only for a remote service.
    const { areAnsweredAlike } = await import("./repeat-questions.ts");
    isAlike = await areAnsweredAlike(questions, identity, invocation);
    return isAlike;
  } finally {
    // Avoids useless requests before each build to a service that is slow or responds differently each time.
    if (!isAlike) forgetBuild(identity);
  }
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
