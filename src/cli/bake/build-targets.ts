import { resolve } from "node:path";
import { usageError } from "../../errors.ts";
import { wholeName } from "../../registry/repository.ts";
import { withLatest } from "../../service/images/reference.ts";
import { exitCodeOfDocker, failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import type { Progress } from "../../terminal/progress.ts";
import { readSharing } from "../builds/build-cache.ts";
import { chooseServices } from "../builds/build-services.ts";
import { readBuildSigner } from "../builds/build-signer.ts";
import { readCheckedDockerfile } from "../builds/checked-dockerfile.ts";
import { readBuildInputs } from "../builds/inputs.ts";
import { hasKeyMark } from "../builds/keys/key-in-tags.ts";
import { readBuildOptions } from "../builds/options/build-options.ts";
import { createProgress } from "../builds/progress.ts";
import { metadataOf, refuseInput } from "../builds/result-files.ts";
import type { Invocation } from "../command-line/command.ts";
import { positiveInteger, readPlatforms } from "../command-line/option-values.ts";
import {
  findPlace,
  printResult,
  type ResultPlace,
  removeOld,
  requireWritable,
  unusablePlace,
  writeAllOrNone,
} from "../command-line/result.ts";
import { isSameFile } from "../process/same-file.ts";
import { methodOf } from "./call.ts";
import { callTargets } from "./call-targets.ts";
import { isDroppable } from "./keys/keyed-requests.ts";
import { isAddress } from "./names.ts";
import type { ResolvedBake, ResolvedTarget } from "./resolve.ts";
import { type BuildAll, type Built, buildAll, type SkippedTarget } from "./sets/build-all.ts";
import { openResults, type ResultsPlace, readResultsPlace } from "./sets/results-file.ts";
import { resultOf } from "./sets/target-end.ts";
import {
  buildOf,
  inTarget,
  placeholder,
  reasonAgainstCache,
  requireServices,
  requireSigned,
  withTarget,
} from "./target-request.ts";

/**
 * Builds all targets: each as `bough build --docker` would, at the same time, as far as they do not need each other. They share
 * the service, the slots of `--jobs`, and all layers. Returns the exit code.
 */
export async function buildTargets(
  bake: ResolvedBake,
  files: ReadonlySet<string>,
  invocation: Invocation,
): Promise<number> {
  const { values, runtime, log } = invocation;
  const called = [...bake.targets.values()].filter((target) => methodOf(target) !== undefined);
  const targets = builtTargets(bake);
  const shard = values.text("shard");
  if (bake.targets.size === 0)
    log.warn(
      shard === undefined
        ? "there is nothing to build: no service has a build"
        : `there is nothing to build: none of the targets is in shard ${shard}`,
    );
  const jobs = positiveInteger(values.text("jobs"), "--jobs", "It is a number of steps, as in --jobs 4.");
  const metadata = ["metadata-file"].flatMap((name) => {
    const given = values.text(name);
    return given === undefined ? [] : [findPlace(`--${name}`, given, runtime.workingDirectory)];
  });
  const results = new Map<string, Built>();
  const skipped = new Map<string, SkippedTarget>();
  const keepsGoing = values.flag("keep-going");
  const lines = readResultsPlace(invocation);
  const written = [...metadata, ...(typeof lines === "object" ? [lines] : [])];
  for (const place of written) requireWritable(place);
  const writeMetadata = () =>
    writeAllOrNone(metadata.map((place) => ({ ...place, text: metadataText(results, skipped, called) })));
  if (targets.size === 0 && called.length > 0) {
    writeMetadata();
    return callTargets(called, bake, invocation);
  }
  const print = () => {
    if (results.size + skipped.size > 0 && runtime.isPlugin !== true && lines !== "stdout")
      printTargets(targets, results, skipped, invocation);
  };
  const progress = await createProgress(invocation, { hasOneDockerfile: false });
  try {
    for (const place of written) refuseInputs(place, bake.targets, files, invocation);
    refuseSameResults([...targets.values()], runtime.workingDirectory);
    refuseTwoInOne(lines, metadata, [...targets.values()]);
    // After a failure, too, none may be taken for a file of this bake.
    for (const place of metadata) removeOld(place);
    using file = lines && openResults(lines, invocation);
    requireServices(targets, invocation);
    for (const target of targets.values()) warnOfCaches(target, invocation.runtime, progress.log);
    requireSigned(targets, invocation);
    const signers: BuildAll["signers"] = new Map();
    // What is wrong with a target fails that one alone then.
    if (!keepsGoing)
      for (const target of targets.values()) await checkTarget(target, progress, signers, invocation);
    const onEnd: BuildAll["onEnd"] = (ended, details) => {
      if (!ended.target.isLinked) file?.append(resultOf(ended, details));
    };
    const failure =
      targets.size === 0
        ? undefined
        : await buildAll(
            targets,
            { progress, results, skipped, jobs, keepsGoing, keepsSteps: metadata.length > 0, signers, onEnd },
            invocation,
          );
    writeMetadata();
    file?.requireWritten();
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
  return called.length === 0 ? 0 : callTargets(called, bake, invocation);
}

/** Returns the targets that are built: those without a call, and what they are made of. */
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

/** Throws for a file that would replace one that was read, or an input of a target. */
function refuseInputs(
  place: ResultPlace,
  targets: ResolvedBake["targets"],
  files: ReadonlySet<string>,
  invocation: Invocation,
): void {
  for (const file of files)
    if (isSameFile(resolve(invocation.runtime.workingDirectory, file), place.path))
      throw unusablePlace(place, "this is a file of the bake");
  for (const target of targets.values()) {
    let own: ReturnType<typeof buildOf>;
    try {
      own = buildOf(target, () => placeholder, invocation);
    } catch (error) {
      // It has no inputs, and fails when its turn comes.
      if (invocation.values.flag("keep-going")) continue;
      throw error;
    }
    inTarget(target, () => refuseInput(place, own));
  }
}

/** Throws if two targets would give one tag to different images, or write one file. Directories of files are written together. */
function refuseSameResults(targets: readonly ResolvedTarget[], workingDirectory: string): void {
  const owners = new Map<string, ResolvedTarget>();
  for (const target of targets) {
    const { tags = [], output = [] } = target.fields;
    const places = output.flatMap(({ type, dest }) =>
      type === "local" || typeof dest !== "string" || dest === "-" ? [] : [resolve(workingDirectory, dest)],
    );
    const results = [
      // Equal keys are equal images.
      ...(target.isLinked
        ? []
        : tags
            .filter((tag) => !hasKeyMark(tag))
            .map((tag) => ({ key: withLatest(tag), shown: `the tag ${tag}` }))),
      ...places.map((path) => ({ key: path, shown: `the output ${path}` })),
    ];
    for (const { key, shown } of results) {
      const other = owners.get(key);
      owners.set(key, target);
      // Services of a compose file often share an image, and what it is built of.
      const isSame = !places.includes(key) && Bun.deepEquals(other?.fields, target.fields);
      if (other === undefined || other === target || isSame) continue;
      throw withTarget(
        usageError(`${shown} is also that of the target ${other.name}`, "Each needs its own."),
        target,
      );
    }
  }
}

/** Throws if the results would be in a file with something else. */
function refuseTwoInOne(
  results: ResultsPlace | undefined,
  others: readonly ResultPlace[],
  targets: readonly ResolvedTarget[],
): void {
  if (results === undefined) return;
  if (results !== "stdout") {
    for (const { path, option } of others)
      if (isSameFile(path, results.path) || path === results.path)
        throw unusablePlace(results, `this is also the file of ${option}`);
    return;
  }
  const writing = targets.find(({ fields: { output = [] } }) =>
    output.some(
      ({ type, dest }) => dest === "-" || (dest === undefined && ["tar", "oci"].includes(String(type))),
    ),
  );
  if (writing === undefined) return;
  throw withTarget(
    usageError(
      "its image goes to standard output, and so do the lines of --results -",
      "Give --results a file.",
    ),
    writing,
  );
}

function warnOfCaches(
  { name, fields }: ResolvedTarget,
  { environment }: Invocation["runtime"],
  log: Progress["log"],
): void {
  for (const field of ["cache-from", "cache-to"] as const)
    for (const entry of fields[field] ?? []) {
      const reason = reasonAgainstCache(entry, environment);
      if (reason !== undefined) log.warn(`target ${name}: ${field}: ${reason}: it is left out`);
    }
}

/** Throws for what can be seen to be wrong with a target before anything is run. */
async function checkTarget(
  target: ResolvedTarget,
  { log }: Progress,
  signers: BuildAll["signers"],
  invocation: Invocation,
): Promise<void> {
  const own = buildOf(target, () => placeholder, invocation);
  const { outputs } = inTarget(target, () => {
    chooseServices(own, readPlatforms(own.values.text("platform")));
    return readBuildOptions(own);
  });
  // Contexts at an address are fetched when their turn comes, if they did not come with the bake file.
  if (target.remote?.context === undefined && isAddress(target.fields.context)) return;
  try {
    using inputs = await readBuildInputs(own, {
      log: { ...log, warn: () => undefined },
      keepsContext: false,
    });
    await readCheckedDockerfile(inputs, own);
    await inputs.secrets.load();
    await readSharing(own, inputs);
    await readBuildSigner(own, outputs, log, signers);
  } catch (error) {
    throw withTarget(error, target);
  }
}

/** A map by target, as docker buildx bake writes it. */
function metadataText(
  results: ReadonlyMap<string, Built>,
  skipped: ReadonlyMap<string, SkippedTarget>,
  called: readonly ResolvedTarget[],
): string {
  const names = [
    ...new Set([...results.keys(), ...skipped.keys(), ...called.map(({ name }) => name)]),
  ].sort();
  const all = Object.fromEntries(
    names.map((name) => {
      const result = results.get(name);
      if (result !== undefined) return [name, metadataOf(result, result.buildx)];
      const { digest, tags } = skipped.get(name) ?? {};
      const named = tags && { "image.name": tags.map(wholeName).join(",") };
      return [name, digest === undefined ? {} : { "containerimage.digest": digest, ...named }];
    }),
  );
  return `${jsonText(all, { indent: 2 })}\n`;
}

function printTargets(
  targets: ReadonlyMap<string, ResolvedTarget>,
  results: ReadonlyMap<string, Built>,
  skipped: ReadonlyMap<string, SkippedTarget>,
  invocation: Invocation,
): void {
  // An image goes to standard output, where nothing else may be printed then.
  if (results.values().some(({ printsImage }) => !printsImage)) return;
  const isDropped = (name: string) => {
    const target = targets.get(name);
    return invocation.values.flag("drop-pushed") && target !== undefined && isDroppable(target);
  };
  const built = [...results].filter(([name]) => targets.get(name)?.isLinked !== true);
  const shown = [
    ...built.map(
      ([name, result]) => [name, isDropped(name) ? shownOfDropped(result) : shownOf(result)] as const,
    ),
    ...[...skipped].map(([name, target]) => [name, shownOfSkipped(target)] as const),
  ].sort(([one], [other]) => (one < other ? -1 : 1));
  printResult(invocation, {
    id: shown.flatMap(([, { image, platforms }]) => platforms?.map((each) => each.image) ?? image ?? []),
    json: Object.fromEntries(
      shown.map(([name, { image, tags, session, exported, platforms, digest }]) => {
        const chosen = platforms && { platforms };
        return [name, { image, tag: tags[0] ?? null, tags, session, ...chosen, digest, exported }];
      }),
    ),
    table: () => {
      const hasPlatforms = shown.some(([, { platforms }]) => platforms !== undefined);
      const rows = shown.flatMap(
        ([name, { image, tags, session, platforms = [{ image, platform: null }] }]) =>
          (tags.length === 0 ? [null] : tags).flatMap((tag) =>
            platforms.map((each) => [
              name,
              each.image,
              ...(hasPlatforms ? [each.platform] : []),
              tag,
              session,
            ]),
          ),
      );
      return {
        header: ["TARGET", "IMAGE", ...(hasPlatforms ? ["PLATFORM"] : []), "TAG", "SESSION"],
        rows: rows.map((row) => row.map((whole) => whole && { whole })),
      };
    },
  });
}

type Shown = Pick<Built, "tags" | "exported" | "platforms"> & {
  image: string | null;
  session: string | null;
  digest: string | null;
};

function shownOf(result: Built): Shown {
  return { ...result, digest: result.exported[0]?.descriptor.digest ?? null };
}

/** With `--drop-pushed` only the registry has it. */
function shownOfDropped(result: Built): Shown {
  const { platforms: _, ...shown } = shownOf(result);
  return { ...shown, image: null };
}

function shownOfSkipped({ tags, digest }: SkippedTarget): Shown {
  return { image: null, session: null, tags, digest, exported: [] };
}
