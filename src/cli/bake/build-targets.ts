import type { BoughError } from "../../errors.ts";
import { exitCodeOfDocker, failureOf } from "../../terminal/failure.ts";
import { createProgress } from "../builds/progress.ts";
import { findPlace, requireWritable, writeAllOrNone } from "../command-line/result.ts";
import type { BakeInvocation } from "./options/bake-options.ts";
import type { ResolvedBake, ResolvedTarget } from "./resolve.ts";
import { type BuildAll, buildAll } from "./sets/build-all.ts";
import { checkTarget, warnOfCaches } from "./sets/check-target.ts";
import { metadataText, printTargets } from "./sets/print-targets.ts";
import { requireServices, requireSigned } from "./sets/require-options.ts";
import {
  refuseFilesOf,
  refuseSameFile,
  refuseSameResults,
  refuseSameStream,
} from "./sets/result-conflicts.ts";
import { openResults, readResultsPlace } from "./sets/results-file.ts";
import { resultOf, type TargetOutcomes } from "./sets/target-outcome.ts";
import { methodOf } from "./target-call.ts";

/**
 * Builds all targets: each as `bough build --docker` would, at the same time, as far as they do not need each other. They share
 * the service, the slots of `--jobs`, and all layers. Returns the exit code.
 */
export async function buildTargets(
  bake: ResolvedBake,
  files: ReadonlySet<string>,
  invocation: BakeInvocation,
): Promise<number> {
  const { options, runtime, log } = invocation;
  const { shard, jobs } = options;
  const called = [...bake.targets.values()].filter((target) => methodOf(target) !== undefined);
  const targets = builtTargets(bake);
  if (bake.targets.size === 0)
    log.warn(
      shard === undefined
        ? "there is nothing to build: no service has a build"
        : `there is nothing to build: none of the targets is in shard ${shard.number}/${shard.count}`,
    );
  const { "metadata-file": file } = options;
  const metadata = file === undefined ? [] : [findPlace("--metadata-file", file, runtime.workingDirectory)];
  let ends: TargetOutcomes = new Map();
  const keepsGoing = options["keep-going"] === true;
  const lines = readResultsPlace(invocation);
  const written = [...metadata, ...(typeof lines === "object" ? [lines] : [])];
  for (const place of written) requireWritable(place);
  const writeMetadata = () =>
    writeAllOrNone(metadata.map((place) => ({ ...place, text: metadataText(ends, called) })));
  const call = async () =>
    called.length === 0 ? 0 : (await import("./call-targets.ts")).callTargets(called, bake, invocation);
  if (targets.size === 0 && called.length > 0) {
    writeMetadata();
    return call();
  }
  const print = () => {
    if (runtime.isPlugin !== true && lines !== "stdout") printTargets(targets, ends, invocation);
  };
  const progress = await createProgress(options.progress, invocation);
  try {
    for (const place of written) refuseFilesOf(place, bake.targets, files, invocation);
    refuseSameResults([...targets.values()], runtime.workingDirectory);
    refuseSameFile(lines, metadata);
    refuseSameStream(lines, [...targets.values()], invocation);
    using opened = lines && openResults(lines, invocation);
    requireServices(targets, options);
    for (const target of targets.values()) warnOfCaches(target, runtime, progress.log);
    requireSigned(targets, options);
    const signers: BuildAll["signers"] = new Map();
    // With --keep-going, an invalid target fails alone, when its turn comes.
    if (!keepsGoing)
      for (const target of targets.values()) await checkTarget(target, progress.log, signers, invocation);
    const onEnd: BuildAll["onEnd"] = (ended, outputOf) => {
      if (!ended.target.isLinked) opened?.append(resultOf(ended, outputOf));
    };
    let failure: BoughError | undefined;
    if (targets.size > 0) {
      const keepsSteps = metadata.length > 0;
      const how = { progress, jobs, keepsGoing, keepsSteps, signers, onEnd };
      ({ ends, failure } = await buildAll(targets, how, invocation));
    }
    writeMetadata();
    opened?.requireWritten();
    progress.close();
    if (failure !== undefined) {
      print();
      throw failure;
    }
  } catch (error) {
    progress.close();
    if (progress.fail(error))
      return invocation.runtime.isPlugin ? exitCodeOfDocker(error) : failureOf(error).exitCode;
    throw error;
  }
  print();
  return call();
}

/** Returns the targets that are built: those without a call, and the targets that they need. */
function builtTargets({ targets }: ResolvedBake): Map<string, ResolvedTarget> {
  const names = new Set<string>();
  const add = (target: ResolvedTarget | undefined) => {
    if (target === undefined || names.has(target.name)) return;
    names.add(target.name);
    for (const need of target.needs) add(targets.get(need));
  };
  for (const target of targets.values()) if (methodOf(target) === undefined) add(target);
  return new Map([...targets].filter(([name]) => names.has(name)));
}
