import { runBuild } from "../../builder/build.ts";
import { createImageFacts } from "../../builder/cache/image-facts.ts";
import { requireNetworks } from "../../builder/commands/network.ts";
import type { Emit } from "../../builder/events.ts";
import type { BuildRequest, BuildServices, Companions, SourceFiles } from "../../builder/job.ts";
import { requireMounts } from "../../builder/mounts/mount-support.ts";
import type { BuildResult } from "../../builder/result.ts";
import { type ServiceSupport, supportOf } from "../../builder/service-support.ts";
import { missingParts } from "../../builder/stages/step-record.ts";
import { describeMissing, type MissingPart } from "../../builder/state/warnings.ts";
import { type Finding, lineOf, textOf } from "../../check/finding.ts";
import { localFileSystem } from "../../context/file-system/file-system.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { usageError } from "../../errors.ts";
import { unlessStateDiskFull } from "../../state-failure.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { Store } from "../../store/store.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Invocation } from "../command-line/command.ts";
import { buildSession } from "../contexts/context-source.ts";
import { reportOrigin } from "../contexts/fetched-context.ts";
import { createDecompress, createGit } from "../contexts/programs.ts";
import { requireAnnotatedPlatforms } from "../export/annotations.ts";
import { type BuildOutput, requirePlatformsFit, takesStandardOutput } from "../export/build-outputs.ts";
import type { Daemon } from "../export/daemon.ts";
import { epochOf } from "../export/times.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { requireLimits } from "../run/limit-options.ts";
import { isEmbedded } from "../service/choice.ts";
import { type Connection, connect } from "../service/connection.ts";
import { buildTimeout } from "../service/timeout.ts";
import { enterBuild } from "../sessions/running-builds.ts";
import { type BuildCache, openBuildCache, readSharing } from "./build-cache.ts";
import { readCheckedDockerfile } from "./checked-dockerfile.ts";
import { type BuildInputs, type InlineDockerfile, readBuildInputs } from "./inputs.ts";
import type { Measures } from "./measures.ts";
import { readBuildOptions, requirePlatforms } from "./options/build-options.ts";
import { openLock } from "./result-files.ts";

/** What several builds of one command share. */
export interface BuildsTogether {
  companions: Companions;
  connection: Connection;
  signal: AbortSignal;
  /** Aborts the signal. */
  stop(reason: unknown): void;
  /** The sessions of the builds. */
  sessions: Set<string>;
  /** What is known of the files of each context. */
  tables: Map<string, FileTables>;
}

type FileTables = Pick<SourceFiles, "hashes" | "fileStates">;

/** Creates what a build needs, runs it, and writes its outputs. The caller displays it. */
export async function performBuild(
  progress: Progress,
  invocation: Invocation & InlineDockerfile,
  measures: Measures | undefined,
  together?: BuildsTogether,
): Promise<BuildResult & { printsImage: boolean }> {
  const { runtime, globals } = invocation;
  const { log } = progress;
  const {
    jobsIn,
    outputs: asked,
    attestations,
    annotations,
    timeout,
    limits,
    ...options
  } = readBuildOptions(invocation);
  const { outputs, daemon, kept } = await findDaemonFor(asked, runtime);
  const opened = await openLock(invocation);
  opened?.requireWritable();
  using inputs = await readBuildInputs(invocation, { log, keepsContext: true, lock: opened?.lock });
  const { context, contexts, ignore, buildArgs, labels, allowsLocalFrom, dialect, target } = inputs;
  const { dockerfile, directive, findings } = await readCheckedDockerfile(inputs, invocation, opened);
  if (inputs.platforms.length > 1 && daemon?.hasContentStore === false) refusePlatforms(daemon);
  if (!dialect.keepsConfiguration) requireCompleteImage(missingParts(dockerfile), outputs, invocation.values);

  const isFound = reportFindings(findings, progress.emit);

  const secrets = inputs.secrets.load();
  const attesting =
    attestations && (await import("../export/attest.ts")).prepareAttestations(inputs, secrets, attestations);
  if (inputs.fetched !== undefined) reportOrigin(inputs.fetched, attesting?.inputs);
  const sharing = await readSharing(invocation, inputs);
  const stopping = new AbortController();
  const signal = together?.signal ?? AbortSignal.any([runtime.signal, stopping.signal]);
  await using own = new AsyncDisposableStack();
  const connection =
    together?.connection ??
    own.use(await connect({ runtime: { ...runtime, signal }, globals, log }, measures));
  const { service } = connection;
  const supports = supportOf(service, dialect);
  if (isEmbedded(runtime, globals) && together === undefined)
    (await import("../service/make-room.ts")).reportRoom(runtime, log);
  const session = buildSession(inputs.place);
  using owner = enterBuild(stateDirectory(runtime), session);
  together?.sessions.add(session);
  const tables = openFileTables(connection.store, inputs, together?.tables);
  try {
    if (inputs.platforms.length > 1) requirePlatformsFit(outputs);
    await requireSupport(dockerfile, inputs, { limits, annotations }, { service, supports });
    using cache = await openBuildCache(
      connection,
      { sharing, session, companions: together?.sessions, log },
      inputs,
      invocation,
    );
    const { store, layers, memory, remoteBases, carriedCaches } = cache;
    const request: BuildRequest = {
      asked: {
        ...options,
        ...{ dialect, target, dockerfile, contexts, session, buildArgs, labels, secrets, allowsLocalFrom },
        platform: inputs.platforms[0],
        uncachedStages: inputs.uncachedStages,
        maxAddBytes: inputs.maxAddBytes,
        jobs: jobsIn(dialect),
        commands: {
          timeoutSeconds: await buildTimeout(timeout, service),
          network: inputs.network.mode,
          hosts: inputs.network.hosts,
          limits,
        },
      },
      services: {
        ...{ service, supports, store, layers, memory, remoteBases, carriedCaches, owner, signal },
        facts: createImageFacts(service, supports, store.facts),
        ...machineOf(runtime),
      },
      source: { context, ignore, files: localFileSystem, ...tables },
      inputs: attesting?.inputs,
      lock: opened?.lock,
      stop: together?.stop ?? ((reason) => stopping.abort(reason)),
      companions: together?.companions,
      emit: (event) => {
        const isSkipped =
          event.type === "warning" &&
          event.rule !== undefined &&
          (!directive.isReported(event.rule, event.line) || isFound(event.rule, event.line));
        if (!isSkipped) progress.emit(event);
      },
    };
    const result = await runAndSave(request, inputs.platforms, cache, runtime.signal, log);
    let exported: BuildResult["exported"] = [];
    if (outputs.length > 0) {
      requireCompleteImage(result.missing, outputs, invocation.values);
      const { writeBuildOutputs } = await import("./write-outputs.ts");
      const attest = attesting && ((image: string) => attesting.attest(service, image, options.tags));
      const additions = { attest, annotations: annotations?.parts, daemon };
      const timed = dialect.hasSourceDate ? withEpoch(outputs, epochOf(dockerfile)) : outputs;
      exported = await writeBuildOutputs(timed, imagesOf(result), connection, invocation, log, additions);
    }
    if (kept !== undefined) sayKept(kept, result, log);
    for (const image of imagesOf(result)) await connection.requireKept(image);
    // Builds at once wait for each other, so that none loses what another one adds.
    if (opened !== undefined) connection.store.atomically(() => opened.save(inputs, log));
    return { ...result, exported, printsImage: !takesStandardOutput(outputs) };
  } catch (error) {
    throw await conclude(error, session, connection, invocation);
  } finally {
    remember(() => connection.store.sessions.noteBuild(session, inputs.place));
  }
}

/** Finds docker's daemon, if an output is for it. `kept`: why there is none; then the image stays in bough's store. */
async function findDaemonFor(
  outputs: readonly BuildOutput[],
  runtime: Runtime,
): Promise<{ outputs: readonly BuildOutput[]; daemon: Daemon | undefined; kept: string | undefined }> {
  const isForDaemon = ({ destinations }: BuildOutput) => destinations.some(({ kind }) => kind === "daemon");
  if (!outputs.some(isForDaemon)) return { outputs, daemon: undefined, kept: undefined };
  const { findDaemon } = await import("../export/daemon.ts");
  const found = await findDaemon(runtime);
  if (found.daemon !== undefined) return { outputs, daemon: found.daemon, kept: undefined };
  return { outputs: outputs.filter((output) => !isForDaemon(output)), daemon: undefined, kept: found.reason };
}

function refusePlatforms({ address }: Daemon): never {
  throw usageError(
    `the docker daemon at ${address} keeps images of one platform`,
    "Give --push or -o type=oci,dest=PATH, or one --platform; with containerd's image store docker keeps several.",
  );
}

function sayKept(reason: string, { image, tags: [tag] }: BuildResult, log: Progress["log"]): void {
  log.info(`the image is in bough's own store, since ${reason}: \`bough run ${tag ?? image}\` runs it`);
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

/** Returns the image for each platform. */
function imagesOf({ image, platforms }: BuildResult): string[] {
  return platforms?.map((each) => each.image) ?? [image];
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
  const tables = opened.get(known) ?? { hashes: hashes.open(known), fileStates: fileStates.open(known) };
  opened.set(known, tables);
  return tables;
}

/** Rejects if the service cannot do what the Dockerfile or the options ask for. */
async function requireSupport(
  dockerfile: Dockerfile,
  { network, platforms }: BuildInputs,
  { limits, annotations }: Pick<ReturnType<typeof readBuildOptions>, "limits" | "annotations">,
  { service, supports }: { service: Connection["service"]; supports: ServiceSupport },
): Promise<void> {
  await requireNetworks(dockerfile, network, service, supports);
  await requireMounts(dockerfile, supports);
  await requireLimits(service, limits);
  await requirePlatforms(platforms, supports);
  await requireAnnotatedPlatforms(annotations, platforms, supports);
}

/** Returns what a build uses of this machine, besides its files. */
function machineOf(
  runtime: Runtime,
): Pick<BuildServices, "decompress" | "git" | "openRegistry" | "fetchUrl" | "clock"> {
  const { fetch, clock, environment } = runtime;
  return {
    decompress: createDecompress(runtime.environment.PATH),
    git: createGit(runtime),
    openRegistry: async (address) => {
      const { openBlobSource } = await import("../../registry/open-blob-store.ts");
      return openBlobSource(address, { fetch, clock, environment });
    },
    fetchUrl: runtime.fetch,
    clock: runtime.clock,
  };
}

/** Runs the build, and saves what later builds can use: what was done before a failed step is still valid. */
async function runAndSave(
  request: BuildRequest,
  platforms: BuildInputs["platforms"],
  { finish }: BuildCache,
  /** Unlike the request's own, it is not aborted by a failed stage. */
  signal: AbortSignal,
  log: Progress["log"],
): Promise<BuildResult> {
  const { hashes, fileStates } = request.source;
  const { store } = request.services;
  const { session } = request.asked;
  try {
    const result =
      platforms.length > 1
        ? await (await import("../../builder/platform-builds.ts")).runForPlatforms(request, platforms)
        : await runBuild(request);
    remember(() => {
      // It may be another target's, of the same context, which has just failed.
      if (!request.services.signal.aborted) store.failedSteps.delete(session);
      hashes.save();
      if (!fileStates.isUsed) hashes.tidy();
      fileStates.save();
    }, log);
    await finish(imagesOf(result));
    return result;
  } catch (error) {
    saveQuietly(hashes);
    saveQuietly(fileStates);
    if (!signal.aborted) await finish([]).catch(() => undefined);
    throw error;
  }
}

/** Returns the error of a failed build for the user. Loads the code for it only now. */
async function conclude(
  error: unknown,
  session: string,
  connection: Connection,
  invocation: Invocation,
): Promise<unknown> {
  const { concludeFailure, withDebugHint } = await import("./failed-result.ts");
  const described = withDebugHint(error, {
    session,
    globals: invocation.globals,
    store: connection.store,
    opensShell: invocation.values.text("on-error") === "shell",
  });
  return concludeFailure(described, session, connection, invocation);
}

/** Writes what only helps later builds. The build's own result or error stands even if the disk is full. */
function remember(write: () => void, log?: Pick<Progress["log"], "warn">): void {
  unlessStateDiskFull(write, () =>
    log?.warn("there is no space left for bough's state: the next build hashes files again"),
  );
}

/** Saves the hashes after a failed build, since they are still valid. Ignores errors: the build's error is the one to report. */
function saveQuietly(hashes: Pick<ContextHashes, "save">): void {
  try {
    hashes.save();
  } catch {
    // The next build hashes the files again.
  }
}

/**
 * Throws if an image that lacks a part of Docker's would leave this machine, unless `--no-docker` asks for it. The settings of an
 * image count only where they are written.
 */
function requireCompleteImage(
  missing: readonly MissingPart[],
  outputs: readonly BuildOutput[],
  values: Pick<Values, "flag">,
): void {
  if (values.flag("no-docker")) return;
  const kinds = outputs.flatMap(({ destinations }) => destinations.map(({ kind }) => kind));
  const hasSettings = kinds.some((kind) => !["local", "tar"].includes(kind));
  const counted = missing.filter(({ what }) => hasSettings || !["CMD", "ENTRYPOINT"].includes(what));
  if (kinds.length === 0 || counted.length === 0) return;
  const [option, does] = values.flag("push") ? ["--push", "pushes"] : ["--output", "writes"];
  throw usageError(
    `${option} is refused: the image lacks ${describeMissing(counted)}`,
    `With --docker it is built as Docker does; BOUGH_DOCKER=1 makes that the default. --no-docker ${does} it as it is.`,
  );
}
