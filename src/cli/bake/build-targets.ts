import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { FoundCommit } from "../../builder/addresses/repository-address.ts";
import { createCompanions } from "../../builder/build.ts";
import { AbandonedError } from "../../builder/events.ts";
import type { BuildResult } from "../../builder/result.ts";
import { usageError } from "../../errors.ts";
import { createSingleFlight } from "../../once.ts";
import { withLatest } from "../../service/images/reference.ts";
import { exitCodeOfDocker, failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import type { Progress } from "../../terminal/progress.ts";
import { createCommandCaches, readSharing } from "../builds/build-cache.ts";
import { type ChosenService, chooseServices, connectTo } from "../builds/build-services.ts";
import { readCheckedDockerfile } from "../builds/checked-dockerfile.ts";
import { readBuildInputs } from "../builds/inputs.ts";
import { hasKeyMark } from "../builds/keys/key-in-tags.ts";
import { readBuildOptions } from "../builds/options/build-options.ts";
import { readProgressMode } from "../builds/options/result-definitions.ts";
import { type BuildsTogether, performBuild } from "../builds/perform-build.ts";
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
import { isEmbedded } from "../service/choice.ts";
import { methodOf } from "./call.ts";
import { callTargets } from "./call-targets.ts";
import { createRequests } from "./keys/keyed-requests.ts";
import { isAddress } from "./names.ts";
import type { ResolvedBake, ResolvedTarget } from "./resolve.ts";
import { createTargetDisplays } from "./target-progress.ts";
import {
  buildOf,
  type ImageOf,
  inTarget,
  placeholder,
  reasonAgainstCache,
  requireServices,
  withTarget,
} from "./target-request.ts";

type Built = BuildResult & { printsImage: boolean };

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
  if (bake.targets.size === 0) log.warn("there is nothing to build: no service has a build");
  const jobs = positiveInteger(values.text("jobs"), "--jobs", "It is a number of steps, as in --jobs 4.");
  const metadata = ["metadata-file"].flatMap((name) => {
    const given = values.text(name);
    return given === undefined ? [] : [findPlace(`--${name}`, given, runtime.workingDirectory)];
  });
  for (const place of metadata) requireWritable(place);
  const results = new Map<string, Built>();
  const writeMetadata = () =>
    writeAllOrNone(metadata.map((place) => ({ ...place, text: metadataText(results, called) })));
  if (targets.size === 0 && called.length > 0) {
    writeMetadata();
    return callTargets(called, bake, invocation);
  }
  const progress = await createProgress(invocation, { hasOneDockerfile: false });
  try {
    for (const place of metadata) refuseInputs(place, bake.targets, files, invocation);
    refuseSameResults([...targets.values()], runtime.workingDirectory);
    // After a failure, too, none may be taken for a file of this bake.
    for (const place of metadata) removeOld(place);
    requireServices(targets, invocation);
    for (const target of targets.values()) warnOfCaches(target, invocation.runtime, progress.log);
    for (const target of targets.values()) await checkTarget(target, progress, invocation);
    if (targets.size > 0) await buildAll(targets, { progress, results, jobs }, invocation);
    writeMetadata();
    progress.close();
  } catch (error) {
    progress.close();
    if (progress.fail(error))
      return invocation.runtime.isPlugin ? exitCodeOfDocker(error) : failureOf(error).exitCode;
    throw error;
  }
  if (results.size > 0 && invocation.runtime.isPlugin !== true) printTargets(targets, results, invocation);
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
  for (const target of targets.values())
    inTarget(target, () =>
      refuseInput(
        place,
        buildOf(target, () => placeholder, invocation),
      ),
    );
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
async function checkTarget(target: ResolvedTarget, { log }: Progress, invocation: Invocation): Promise<void> {
  const own = buildOf(target, () => placeholder, invocation);
  inTarget(target, () => {
    readBuildOptions(own);
    chooseServices(own, readPlatforms(own.values.text("platform")));
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
  } catch (error) {
    throw withTarget(error, target);
  }
}

interface Together {
  progress: Progress;
  /** Gets the results of the targets that are built. */
  results: Map<string, Built>;
  /** `--jobs`. */
  jobs: number | undefined;
}

/** Builds each target once those that it needs are built. The first failure stops the others. */
async function buildAll(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { progress, results, jobs: given }: Together,
  invocation: Invocation,
): Promise<void> {
  const { runtime } = invocation;
  const stopping = new AbortController();
  const signal = AbortSignal.any([runtime.signal, stopping.signal]);
  await using connections = new AsyncDisposableStack();
  const caches = connections.use(createCommandCaches(progress.log));
  const services = new Map<string | undefined, ReturnType<BuildsTogether["connectTo"]>>();
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const connect = async (service: ChosenService) => {
    const jobs = given ?? (isEmbedded(runtime, service.globals) ? availableParallelism() : 4);
    const own = { runtime: { ...runtime, signal }, log: progress.log };
    const connection = connections.use(await connectTo(service, own));
    return { connection, companions: createCompanions(jobs, { keepsLayers: true, repositories }) };
  };
  const together: BuildsTogether = {
    ...{ signal, caches, sessions: new Set(), tables: new Map() },
    connectTo(service) {
      // What names it.
      const profile = service.option === undefined ? undefined : service.globals.profile;
      return services.getOrInsertComputed(profile, () => connect(service));
    },
    stop: (reason) => stopping.abort(reason),
  };
  const mode = readProgressMode(invocation.values);
  const displayOf = createTargetDisplays(progress, ["json", "rawjson"].includes(mode));
  // As in buildx, whose statuses name targets only if there are several.
  const isAlone = mode === "rawjson" && targets.size === 1;
  const begun = new Set<string>();
  const failures: unknown[] = [];
  const imageOf: ImageOf = (name) => results.get(name) ?? placeholder;

  const requestOf = createRequests(targets, { imageOf, connectTo: together.connectTo }, invocation);

  async function build(target: ResolvedTarget): Promise<void> {
    await Promise.all(target.needs.map((name) => building.get(name)));
    if (signal.aborted) return;
    begun.add(target.name);
    try {
      const display = isAlone ? progress : displayOf(target.name);
      const own = await requestOf(target);
      const result = await performBuild(display, { ...own, log: display.log }, undefined, together);
      results.set(target.name, result);
      const { printsImage: _, ...finished } = result;
      display.emit({ type: "finished", result: finished });
    } catch (error) {
      // What the failure of another target has ended is no failure of its own.
      if (!(error instanceof AbandonedError)) failures.push(withTarget(error, target));
      stopping.abort(new AbandonedError());
    }
  }

  // Each target comes after those that it needs.
  const building = new Map<string, Promise<void>>();
  for (const [name, target] of targets) building.set(name, build(target));
  await Promise.all(building.values());
  if (!runtime.signal.aborted) await caches.write();
  if (failures.length > 0 && !runtime.signal.aborted)
    reportState([...targets.keys()], results, begun, progress);
  for (const failure of failures) throw failure;
  runtime.signal.throwIfAborted();
}

/** Says what was done before a target failed. */
function reportState(
  names: readonly string[],
  results: ReadonlyMap<string, unknown>,
  begun: ReadonlySet<string>,
  { log }: Progress,
): void {
  const built = names.filter((name) => results.has(name));
  const ended = names.filter((name) => begun.has(name) && !results.has(name));
  const left = names.filter((name) => !begun.has(name));
  const parts = [
    `built: ${built.join(", ") || "none"}`,
    `failed or cancelled: ${ended.join(", ")}`,
    ...(left.length === 0 ? [] : [`not begun: ${left.join(", ")}`]),
  ];
  log.info(parts.join("; "));
}

/** A map by target, as docker buildx bake writes it. */
function metadataText(results: ReadonlyMap<string, Built>, called: readonly ResolvedTarget[]): string {
  const names = [...new Set([...results.keys(), ...called.map(({ name }) => name)])].sort();
  const all = Object.fromEntries(
    names.map((name) => {
      const result = results.get(name);
      return [name, result === undefined ? {} : metadataOf(result)];
    }),
  );
  return `${jsonText(all, { indent: 2 })}\n`;
}

function printTargets(
  targets: ReadonlyMap<string, ResolvedTarget>,
  results: ReadonlyMap<string, Built>,
  invocation: Invocation,
): void {
  const all = [...results].sort(([one], [other]) => (one < other ? -1 : 1));
  const shown = all.filter(([name, { printsImage }]) => printsImage && targets.get(name)?.isLinked !== true);
  // An image goes to standard output, where nothing else may be printed then.
  if (all.some(([, { printsImage }]) => !printsImage)) return;
  printResult(invocation, {
    id: shown.flatMap(([, { image, platforms }]) => platforms?.map((each) => each.image) ?? image),
    json: Object.fromEntries(
      shown.map(([name, { image, tags, session, exported, platforms }]) => {
        const digest = exported[0]?.descriptor.digest ?? null;
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
