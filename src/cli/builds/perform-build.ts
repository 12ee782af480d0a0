import type { FoundCommit } from "../../builder/addresses/repository-address.ts";
import { createCompanions } from "../../builder/build.ts";
import { createImageFacts } from "../../builder/cache/image-facts.ts";
import type { Emit } from "../../builder/events.ts";
import type { BuildRequest, SourceFiles } from "../../builder/job.ts";
import type { BuildResult } from "../../builder/result.ts";
import { supportOf } from "../../builder/service-support.ts";
import { missingParts } from "../../builder/stages/step-record.ts";
import { asksForPlatforms } from "../../builder/state/platform.ts";
import { type Finding, lineOf, textOf } from "../../check/rules.ts";
import { BoughError } from "../../errors.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";
import { createSingleFlight } from "../../once.ts";
import { sha256Of } from "../../sha256.ts";
import type { Store } from "../../store/store.ts";
import { prefixLog } from "../../terminal/log.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { Invocation } from "../command-line/command.ts";
import { buildSession } from "../contexts/context-group.ts";
import { reportOrigin } from "../contexts/fetched-context.ts";
import {
  type BuildOutput,
  isForDaemon,
  requireCompleteImage,
  requirePlatformsFit,
  takesStandardOutput,
} from "../export/build-outputs.ts";
import { epochOf } from "../export/times.ts";
import { stateDirectory } from "../process/runtime.ts";
import { chooseServiceFor, isEmbedded, serviceName } from "../service/choice.ts";
import { buildTimeout } from "../service/timeout.ts";
import { enterBuild } from "../sessions/running-builds.ts";
import { type CommandCaches, createCommandCaches, openBuildCache, readSharing } from "./build-cache.ts";
import {
  type BuildService,
  type ChosenService,
  chooseServices,
  connectTo,
  requireSupport,
} from "./build-services.ts";
import { readBuildSigner } from "./build-signer.ts";
import { readCheckedDockerfile } from "./checked-dockerfile.ts";
import { type BakedTarget, type BuildInputs, readBuildInputs } from "./inputs.ts";
import type { Measures } from "./measures.ts";
import { readBuildOptions } from "./options/build-options.ts";
import { imagesOf, machineOf, type PreparedBuild, remember, runAndSave } from "./prepared-build.ts";
import { type Recording, startRecording } from "./recording.ts";
import { openLock } from "./result-files.ts";

/** What several builds of one command share. */
export interface BuildsTogether {
  /** Connects to a service once for all of them. */
  connectTo(service: ChosenService): Promise<Pick<BuildService, "connection" | "companions">>;
  signal: AbortSignal;
  /** Aborts the signal. */
  stop(reason: unknown): void;
  /** The shared caches, which are written when all builds have ended. */
  caches: CommandCaches;
  /** The sessions of the builds. */
  sessions: Set<string>;
  /** What is known of the files of each context. */
  tables: Map<string, FileTables>;
}

type FileTables = Pick<SourceFiles, "hashes" | "fileStates">;

type Performed = BuildResult & { printsImage: boolean };

/** Performs a build and records it for `bough history`. The caller displays it. */
export async function performBuild(
  progress: Progress,
  invocation: Invocation & BakedTarget,
  measures: Measures | undefined,
  together?: BuildsTogether,
  recording = startRecording(invocation, { isBaked: together !== undefined }),
): Promise<Performed> {
  const emit: Emit = (event) => {
    recording.note(event);
    // The reasons are recorded of every build, and shown if they are asked for.
    if (event.type !== "explained" || invocation.values.flag("explain")) progress.emit(event);
  };
  try {
    const result = await prepareAndRun({ ...progress, emit }, invocation, { measures, together, recording });
    await recording.succeed(result);
    return result;
  } catch (error) {
    await recording.fail(error);
    throw error;
  }
}

interface Performing {
  measures: Measures | undefined;
  together: BuildsTogether | undefined;
  recording: Recording;
}

/** Creates what a build needs, runs it, and writes its outputs. */
async function prepareAndRun(
  progress: Progress,
  invocation: Invocation & BakedTarget,
  { measures, together, recording }: Performing,
): Promise<Performed> {
  const { runtime, linked } = invocation;
  const { log } = progress;
  const {
    jobsIn,
    outputs: asked,
    attestations,
    annotatedPlatforms,
    timeout,
    limits,
    ...options
  } = readBuildOptions(invocation);
  const {
    outputs,
    daemon,
    kept,
    images: daemonImages,
  } = isForDaemon(asked) || runtime.isPlugin === true
    ? await (await import("./daemon-output.ts")).findDaemonFor(asked, runtime, log)
    : { outputs: asked };
  const opened = await openLock(invocation);
  opened?.requireWritable();
  using inputs = await readBuildInputs(invocation, { log, keepsContext: true, lock: opened?.lock });
  const { context, contexts, files, ignore, buildArgs, labels, allowsLocalFrom, dialect, target, platforms } =
    inputs;
  const chosen = chooseServices(invocation, platforms);
  const session = buildSession(inputs.place);
  recording.begin(inputs, {
    session,
    service: serviceName(chooseServiceFor(invocation.runtime, chosen[0].globals)),
  });
  const { dockerfile, needed, directive, findings } = await readCheckedDockerfile(inputs, invocation, opened);
  daemon?.requireKeeps({
    "images of several platforms": platforms.length > 1,
    "provenance and packages":
      attestations?.provenance?.isInlineOnly === false || attestations?.sbom === true,
  });
  if (!dialect.keepsConfiguration) requireCompleteImage(missingParts(dockerfile), outputs, invocation.values);

  const isFound = reportFindings(findings, progress.emit);

  const secrets = await inputs.secrets.load();
  recording.hide(secrets);
  const sign = await readBuildSigner(invocation, outputs, log);
  const attesting =
    attestations && (await import("../export/attest.ts")).prepareAttestations(inputs, secrets, attestations);
  if (inputs.fetched !== undefined) reportOrigin(inputs.fetched, attesting?.inputsFor(platforms[0]));
  const sharing = await readSharing(invocation, inputs);
  const stopping = new AbortController();
  const signal = together?.signal ?? AbortSignal.any([runtime.signal, stopping.signal]);
  await using own = new AsyncDisposableStack();
  const shared = together?.caches ?? own.use(createCommandCaches(log));
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const open = async (each: ChosenService): Promise<BuildService> => {
    const named = chosen.length > 1 ? prefixLog(log, each.platforms.map(formatPlatform).join(", ")) : log;
    const alone = async () => ({
      connection: own.use(await connectTo(each, { runtime: { ...runtime, signal }, log: named }, measures)),
      companions:
        platforms.length > 1
          ? createCompanions(jobsIn(dialect, each.globals), { keepsLayers: true, repositories })
          : undefined,
    });
    const connected = await (together?.connectTo(each) ?? alone());
    return { ...each, ...connected, supports: supportOf(connected.connection.service, dialect), log: named };
  };
  const main = await open(chosen[0]);
  const services = [main];
  for (const each of chosen.slice(1)) services.push(await open(each));
  const connected = async ({ option }: ChosenService) =>
    services.find((each) => each.option === option) ?? main;
  const isMultiPlatform = asksForPlatforms(buildArgs);
  const startsAfresh = !options.useCache || inputs.uncachedStages.length > 0;
  const cacheGeneration = startsAfresh ? crypto.randomUUID() : undefined;
  const cacheRealm = realmOf(sharing?.keys.trusted);
  using owner = enterBuild(stateDirectory(runtime), session);
  recording.setOwner(owner.id);
  together?.sessions.add(session);
  const tables = openFileTables(main.connection.store, inputs, together?.tables);
  let failed: BuildService | undefined;
  try {
    if (platforms.length > 1) requirePlatformsFit(outputs);
    await requireSupport(services, needed, inputs, { limits, annotatedPlatforms });
    const prepared: PreparedBuild[] = [];
    for (const each of services) {
      const { connection, supports, companions } = each;
      const { service } = connection;
      const cache = await openBuildCache(
        connection,
        { sharing, shared, session, cacheRealm, companions: together?.sessions, log: each.log },
        inputs,
        invocation,
      );
      const { store, layers, memory, remoteBases, carriedCaches } = cache;
      const request: BuildRequest = {
        asked: {
          ...options,
          ...{
            dialect,
            target,
            dockerfile,
            contexts,
            linked,
            session,
            buildArgs,
            labels,
            secrets,
            allowsLocalFrom,
          },
          platform: each.platforms[0],
          uncachedStages: inputs.uncachedStages,
          pins: invocation.keyed?.pins,
          ...{ cacheGeneration, cacheRealm },
          maxAddBytes: inputs.maxAddBytes,
          jobs: jobsIn(dialect, each.globals),
          commands: {
            timeoutSeconds: await buildTimeout(timeout, service),
            network: inputs.network.mode,
            hosts: inputs.network.hosts,
            limits,
          },
        },
        services: {
          ...{ service, supports, store, layers, memory, remoteBases, carriedCaches, owner, signal },
          daemonImages: isEmbedded(runtime, each.globals) ? daemonImages : undefined,
          facts: createImageFacts(service, supports, store.facts),
          ...machineOf(runtime),
        },
        source: { context, ignore, files, ...tables },
        inputs: recording.observe(attesting?.inputsFor(each.platforms[0])),
        lock: opened?.lock,
        confirmKey: async () => invocation.keyed?.confirm(connected),
        stop(reason) {
          failed ??= each;
          if (together !== undefined) together.stop(reason);
          else stopping.abort(reason);
        },
        companions,
        emit: (event) => {
          const isSkipped =
            event.type === "warning" &&
            event.rule !== undefined &&
            (!directive.isReported(event.rule, event.line) || isFound(event.rule, event.line));
          const isElsewhere = event.type === "tagged" && services.length > 1;
          if (!isSkipped) progress.emit(isElsewhere ? { ...event, service: service.address } : event);
        },
      };
      prepared.push({ service: each, request, cache });
    }
    const inputsFor = (platform: Platform) => recording.observe(attesting?.inputsFor(platform));
    const written = async () => (together === undefined ? shared.write() : undefined);
    const run = async () => {
      const how = { signal: runtime.signal, written, log };
      const result = await runAndSave(prepared, { platforms, inputsFor }, how);
      if (outputs.length > 0) requireCompleteImage(result.missing, outputs, invocation.values);
      return result;
    };
    const deliver = async (result: BuildResult) => {
      if (outputs.length === 0) return [];
      const { writeBuildOutputs } = await import("./write-outputs.ts");
      const toWrite = imagesOf(result, platforms, services).map(({ uuid, platform, service }) => ({
        ...{ uuid, from: service.connection },
        attest: attesting?.attest(service.connection.service, uuid, options.tags, platform),
      }));
      const timed = dialect.hasSourceDate ? withEpoch(outputs, epochOf(dockerfile)) : outputs;
      const isMap = toWrite.length > 1 || isMultiPlatform;
      return writeBuildOutputs(timed, { images: toWrite, isMap, sign }, invocation, log, daemon?.daemon);
    };
    const hasLost = (result: BuildResult) =>
      !takesStandardOutput(outputs) && isAnyLost(imagesOf(result, platforms, services));
    const { result, exported } = await runAndDeliver({ run, deliver, hasLost });
    const images = imagesOf(result, platforms, services);
    kept?.say(result, log);
    for (const { uuid, service } of images) await service.connection.requireKept(uuid);
    // Builds at once wait for each other, so that none loses what another one adds.
    if (opened !== undefined) main.connection.store.atomically(() => opened.save(inputs, log));
    return { ...result, exported, printsImage: !takesStandardOutput(outputs) };
  } catch (error) {
    throw await conclude(error, session, failed ?? main, invocation);
  } finally {
    for (const { connection } of services)
      remember(() => connection.store.sessions.noteBuild(session, inputs.place));
  }
}

interface RunAndDeliver {
  run(): Promise<BuildResult>;
  deliver(result: BuildResult): Promise<BuildResult["exported"]>;
  /** True if the result is lost, and may be made again. */
  hasLost(result: BuildResult): boolean | Promise<boolean>;
}

/**
 * Runs a build and writes its outputs. If that shows that a cache has lost or forged a layer of a result that was found there, builds it
 * again, once: its steps are run then.
 */
async function runAndDeliver({ run, deliver, hasLost }: RunAndDeliver) {
  const found = await run();
  try {
    return { result: found, exported: await deliver(found) };
  } catch (error) {
    const mayBeLoss = error instanceof BoughError && error.kind === "failed";
    if (!mayBeLoss || !(await hasLost(found))) throw error;
  }
  const result = await run();
  return { result, exported: await deliver(result) };
}

async function isAnyLost(images: ReturnType<typeof imagesOf>): Promise<boolean> {
  for (const { uuid, service } of images)
    if ((await service.connection.service.hasImage(uuid)) === false) return true;
  return false;
}

/** Builds that trust the same keys have cache mounts of their own: nobody vouches for what others have left in theirs. */
function realmOf(trusted: ReadonlySet<string> | undefined): string | undefined {
  return trusted && `trusts ${sha256Of([...trusted].sort().join())}`;
}

/** Warns of what the checks have found. Returns a function that says whether the build need not warn of it again. */
function reportFindings(
  findings: readonly Finding[],
  emit: Emit,
): (rule: string, line: number | undefined) => boolean {
  const keyOf = (rule: string, line: number | undefined) => `${rule} ${line}`;
  for (const finding of findings) {
    const { rule } = finding;
    emit({ type: "warning", rule, message: `${textOf(finding)} (${rule})`, line: lineOf(finding) });
  }
  const found = new Set(findings.map((finding) => keyOf(finding.rule, lineOf(finding))));
  return (rule, line) => found.has(keyOf(rule, line));
}

/** An epoch of the command line or the environment comes before the Dockerfile's. */
function withEpoch(outputs: readonly BuildOutput[], epoch: number | undefined): BuildOutput[] {
  return outputs.map((output) => {
    const { times } = output;
    return { ...output, times: { ...times, epoch: times.epoch ?? epoch } };
  });
}

/** Opens what is known of the context's files, once for all builds with that context. */
function openFileTables(
  { hashes, fileStates }: Store,
  { context, fetched, place }: BuildInputs,
  opened: Map<string, FileTables> = new Map(),
): FileTables {
  // The directory of a fetched context differs with each commit.
  const known = fetched === undefined ? context.realPath : place;
  return opened.getOrInsertComputed(known, () => ({
    hashes: hashes.open(known),
    fileStates: fileStates.open(known),
  }));
}

/** Returns the error of a failed build for the user. Loads the code for it only now. */
async function conclude(
  error: unknown,
  session: string,
  /** That of the failed step. */
  { connection, globals, option }: BuildService,
  invocation: Invocation,
): Promise<unknown> {
  const { concludeFailure, ServiceFailure, withDebugHint } = await import("./failed-result.ts");
  const described = withDebugHint(error, {
    session,
    globals,
    store: connection.store,
    opensShell: invocation.values.text("on-error") === "shell",
  });
  const concluded = await concludeFailure(described, session, connection, { ...invocation, globals });
  return option !== undefined && concluded instanceof BoughError
    ? new ServiceFailure(concluded, globals)
    : concluded;
}
