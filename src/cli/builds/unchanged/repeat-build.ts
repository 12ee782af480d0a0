import { dirname } from "node:path";
import type { BuildResult } from "../../../builder/result.ts";
import { openBuildContext } from "../../../context/build-context.ts";
import { requireOwnDirectory } from "../../../own-path.ts";
import type { Invocation } from "../../command-line/command.ts";
import { chooseMode, createProgress } from "../progress.ts";
import { printImage } from "../result.ts";
import type { BuildIdentity } from "./identity.ts";
import { areUnchanged, lookAt, lookAtLog, lookAtTarget } from "./path-states.ts";
import {
  type ContextPath,
  forgetBuild,
  type RememberedBuild,
  readRememberedBuild,
} from "./remembered-build.ts";

/**
 * Repeats the output of the last identical build, if that had nothing to do and nothing has changed since: no file that it read,
 * no state of bough or the engine, no response of the service. Returns false, without any output, if the build must run.
 */
export async function repeatBuild(identity: BuildIdentity, invocation: Invocation): Promise<boolean> {
  const startedAt = invocation.runtime.clock.now();
  const build = readRememberedBuild(identity, startedAt);
  if (build === undefined || !(await isValid(build, identity, invocation))) return false;
  if (invocation.runtime.signal.aborted) return false;
  await replayOutput(build, startedAt, invocation);
  return true;
}

async function isValid(
  build: RememberedBuild,
  identity: BuildIdentity,
  invocation: Invocation,
): Promise<boolean> {
  try {
    if (!(await isUnchanged(build, identity))) return false;
    // An impossible mode must be an error before a request sets a tag.
    chooseMode(invocation);
    return await hasSameResponses(build, identity, invocation);
  } catch {
    // The build itself reports the error.
    return false;
  }
}

async function isUnchanged(
  { context, contexts, inputs, known, logs, files }: RememberedBuild,
  { databases }: BuildIdentity,
): Promise<boolean> {
  for (const path of databases) requireOwnDirectory(dirname(path), { isLinkable: true });
  return (
    areUnchanged(known, lookAt) &&
    areUnchanged(logs, lookAtLog) &&
    areUnchanged(inputs, lookAtTarget) &&
    (await areSamePlaces([context, ...contexts])) &&
    areUnchanged(files, (path) => lookAt(absolutePath(path, context)))
  );
}

/** Rejects if one of them is not a directory any more. */
async function areSamePlaces(places: readonly ContextPath[]): Promise<boolean> {
  for (const { path, realPath } of places)
    if ((await openBuildContext(path, "/")).realPath !== realPath) return false;
  return true;
}

function absolutePath(path: string, { realPath }: ContextPath): string {
  if (path === "") return realPath;
  return path.startsWith("/") ? path : `${realPath}/${path}`;
}

async function hasSameResponses(
  { requests }: RememberedBuild,
  identity: BuildIdentity,
  invocation: Invocation,
): Promise<boolean> {
  if (requests.length === 0) return true;
  let areSame = false;
  try {
    // Loaded only for a remote service.
    const { responsesMatch } = await import("./repeat-requests.ts");
    areSame = await responsesMatch(requests, identity, invocation);
    return areSame;
  } finally {
    // Avoids useless requests before each build to a service that is slow or responds differently each time.
    if (!areSame) forgetBuild(identity);
  }
}

async function replayOutput({ output }: RememberedBuild, startedAt: number, invocation: Invocation) {
  const { clock } = invocation.runtime;
  const progress = await createProgress(invocation);
  let result: BuildResult | undefined;
  for (const item of output) {
    if ("info" in item) progress.log.info(item.info);
    else if (item.type === "warning") progress.emit({ ...item, line: item.line ?? undefined });
    else if (item.type === "step-end") progress.emit({ ...item, record: { ...item.record, seconds: 0 } });
    else if (item.type === "finished") {
      result = { ...item.result, seconds: (clock.now() - startedAt) / 1000 };
      progress.emit({ ...item, result });
    } else progress.emit(item);
  }
  progress.close();
  if (result !== undefined) printImage(invocation, result);
}
