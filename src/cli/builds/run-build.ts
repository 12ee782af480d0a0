import { availableParallelism } from "node:os";
import { runBuild } from "../../builder/build.ts";
import { createImageFacts } from "../../builder/cache/image-facts.ts";
import { requireNetworks } from "../../builder/commands/network.ts";
import { refuseBadStages } from "../../builder/graph/stage-references.ts";
import { refuseUnsupported } from "../../builder/interpreter/refusals.ts";
import type { BuildRequest } from "../../builder/job.ts";
import { refuseBadMounts, requireMounts } from "../../builder/mounts/mount-support.ts";
import type { BuildResult } from "../../builder/result.ts";
import { readCheckDirective } from "../../check/check-directive.ts";
import { localFileSystem } from "../../context/file-system/local-file-system.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { DockerfileError } from "../../dockerfile/problems/dockerfile-error.ts";
import { currentProcess, isAlive } from "../../process-identity.ts";
import { parseTag } from "../../service/images/tag.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import { failureOf } from "../../terminal/failure.ts";
import type { Progress } from "../../terminal/progress.ts";
import { oneOf, positiveInteger } from "../command-line/arguments.ts";
import type { Invocation } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { buildSession } from "../contexts/context-source.ts";
import { readBuildOutputs, requireIndexes, takesStandardOutput } from "../export/build-outputs.ts";
import type { Runtime } from "../process/runtime.ts";
import { readLimitOptions, requireLimits } from "../run/limit-options.ts";
import { isEmbedded } from "../service/choice.ts";
import { connect } from "../service/connection.ts";
import { openBuildCache, readSharing } from "./build-cache.ts";
import { createDecompress } from "./decompress.ts";
import { createGit } from "./git.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import { type Measures, startMeasures } from "./measures.ts";
import { requirePlatform } from "./platform-option.ts";
import { createProgress } from "./progress.ts";
import { printImage } from "./result.ts";
import { prepareResultFiles } from "./result-files.ts";
import { idsOf } from "./secret-options.ts";
import type { BuildIdentity } from "./unchanged/identity.ts";
import { type Recording, startRecording } from "./unchanged/recording.ts";

const defaultTimeoutSeconds = 600;

interface BuildCommandOptions {
  /** Creates the display of the build; by default, the one that its options select. */
  show?: typeof createProgress;
  /** Identifies the build, if its output may be recorded for the next identical build. */
  identity?: BuildIdentity | undefined;
}

/** Runs `bough build` after its command line is parsed. Returns the exit code. */
export async function runBuildCommand(
  invocation: Invocation,
  { show = createProgress, identity }: BuildCommandOptions = {},
): Promise<number> {
  await checkOnError(invocation);
  const shown = await show(invocation).catch((error: unknown) => {
    // Removes the files of an earlier build: after this failure, too, none may be taken for a file of this build.
    prepareResultFiles(invocation);
    throw error;
  });
  const recording = startRecording(identity, invocation, shown);
  const progress = recording?.progress ?? shown;
  let measures: Measures | undefined;
  try {
    const files = prepareResultFiles(invocation);
    measures = await startMeasures(invocation, progress, files);
    const { printsImage, ...result } = await buildWith(measures?.progress ?? progress, invocation, {
      measures,
      recording,
    });
    try {
      files.write(result);
      measures?.end();
      // The last event: emitted only after the files are written.
      progress.emit({ type: "finished", result });
    } finally {
      // The image exists, even if the files could not be written.
      progress.close();
      measures?.print();
      if (printsImage) printImage(invocation, result);
    }
    await recording?.save();
    return 0;
  } catch (error) {
    measures?.endAfterFailure(progress.log);
    progress.close();
    measures?.print();
    const isReported = progress.fail(error);
    if (invocation.values.text("on-error") === "shell") {
      const { openShellAfter } = await import("./on-error.ts");
      const exitCode = await openShellAfter(error, invocation, isReported);
      if (exitCode !== undefined) return exitCode;
    }
    if (isReported) return failureOf(error).exitCode;
    throw error;
  }
}

async function checkOnError({ values, runtime }: Invocation): Promise<void> {
  const given = values.text("on-error");
  if (given === undefined) return;
  oneOf(given, ["shell"], "--on-error");
  const { requireTerminal } = await import("../run/terminal.ts");
  const hint = "Leave it out: a failed build prints the commands that open the failed step.";
  requireTerminal(runtime, "bough build --on-error shell", hint);
}

/** Returns the default of `--jobs`. The embedded engine has this machine's processors, a remote service its own machines. */
function defaultJobs(runtime: Runtime, globals: GlobalOptions): number {
  return isEmbedded(runtime, globals) ? availableParallelism() : 4;
}

async function buildWith(
  progress: Progress,
  invocation: Invocation,
  { measures, recording }: { measures: Measures | undefined; recording: Recording | undefined },
): Promise<BuildResult & { printsImage: boolean }> {
  const { values, runtime, globals } = invocation;
  const timeout = values.text("timeout");
  // The -t of docker build is a tag.
  const tag = /^[a-z]/i.test(timeout ?? "") ? timeout : "NAME:TAG";
  const timeoutHint = `It takes seconds, as in --timeout 1800. To tag the image, use --tag ${tag}.`;
  const timeoutSeconds = positiveInteger(timeout, "--timeout", timeoutHint) ?? defaultTimeoutSeconds;
  const limits = readLimitOptions(values);
  const tags = [...new Set(values.list("tag").map(parseTag))];
  const outputs = readBuildOutputs(invocation, tags);
  using inputs = await readBuildInputs(invocation, { log: progress.log, keepsContext: true });
  const wanted = { provenance: values.flag("provenance"), sbom: values.flag("sbom") };
  const isAttested = wanted.provenance || wanted.sbom;
  if (isAttested) requireIndexes(outputs, wanted.provenance ? "--provenance" : "--sbom");
  const { context, ignore, buildArgs, labels, allowsLocalFrom, mode, target } = inputs;
  const jobs = positiveInteger(values.text("jobs"), "--jobs", "It is a number of steps, as in --jobs 4.");
  const dockerfile = parseDockerfile(inputs.dockerfile.text, inputs.dockerfile.path);
  refuseUnsupported(dockerfile, inputs.network);
  refuseBadMounts(dockerfile, idsOf(inputs.secrets));
  refuseBadStages(dockerfile, { mode, buildArgs, target });
  const directive = readCheckDirective(dockerfile);
  if (directive.turnsIntoErrors) await requireClean(inputs, dockerfile, invocation);
  // Not recorded: builds with checks, which read files without the recording, and those of a fetched context, which may change.
  else if (inputs.fetched === undefined) recording?.noteContext(context);

  const secrets = inputs.secrets.load();
  const attesting = isAttested
    ? (await import("../export/attest.ts")).prepareAttestations(inputs, secrets, wanted)
    : undefined;
  noteOrigin(inputs, attesting?.inputs);
  const sharing = await readSharing(invocation, inputs);
  const stopping = new AbortController();
  const signal = AbortSignal.any([runtime.signal, stopping.signal]);
  await using connection = await connect(
    { runtime: { ...runtime, signal }, globals, log: progress.log },
    measures ?? recording,
  );
  const { service } = connection;
  const session = buildSession(inputs.place);
  // The directory of a fetched context differs with each commit.
  const known = inputs.fetched === undefined ? context.realPath : inputs.place;
  const hashes = connection.store.hashes.open(known);
  const fileStates = connection.store.fileStates.open(known);
  let finish = async () => {};
  try {
    await requireNetworks(dockerfile, inputs.network, service);
    await requireMounts(dockerfile, service);
    await requireLimits(service, limits);
    await requirePlatform(inputs.platform, service);
    const cache = await openBuildCache(
      connection,
      { sharing, session, log: progress.log },
      inputs,
      invocation,
    );
    finish = cache.finish;
    const { store, layers, memory } = cache;
    const job: BuildRequest = {
      mode,
      target,
      jobs: mode === "default" ? 1 : (jobs ?? defaultJobs(runtime, globals)),
      dockerfile,
      context,
      files: recording?.files ?? localFileSystem,
      ignore,
      session,
      buildArgs,
      labels,
      allowsLocalFrom,
      useCache: !values.flag("no-cache"),
      pullsImages: values.flag("pull"),
      timeoutSeconds,
      network: inputs.network.mode,
      limits,
      secrets,
      tags,
      measuresLayers: values.text("metadata-file") !== undefined,
      service,
      facts: createImageFacts(service, store.facts),
      store,
      layers,
      hashes,
      fileStates,
      memory,
      owner: { id: currentProcess(), isAlive },
      inputs: attesting?.inputs,
      maxAddBytes: inputs.maxAddBytes,
      decompress: createDecompress(runtime.environment.PATH),
      git: createGit(runtime),
      fetchUrl: runtime.fetch,
      clock: runtime.clock,
      signal,
      stop: (reason) => stopping.abort(reason),
      emit: (event) => {
        const isSkipped = event.type === "warning" && event.rule && !directive.isReported(event.rule);
        if (!isSkipped) progress.emit(event);
      },
    };
    const result = await runBuild(job);
    connection.store.failedSteps.delete(session);
    hashes.save();
    if (!fileStates.isUsed) hashes.tidy();
    fileStates.save();
    await finish();
    if (outputs.length > 0) {
      const { writeBuildOutputs } = await import("../export/write-outputs.ts");
      const attest = attesting?.attest(service, result.image, tags);
      await writeBuildOutputs(outputs, result.image, connection, invocation, progress.log, attest);
    }
    return { ...result, printsImage: !takesStandardOutput(outputs) };
  } catch (error) {
    saveQuietly(hashes);
    saveQuietly(fileStates);
    // The layers before the failed step are still valid.
    if (!runtime.signal.aborted) await finish().catch(() => undefined);
    const { withDebugHint } = await import("./debugging.ts");
    const { concludeFailure } = await import("./failed-result.ts");
    throw await concludeFailure(
      withDebugHint(error, session, globals, connection.store),
      session,
      connection,
      invocation,
    );
  } finally {
    const usedAt = connection.store.sessions.noteBuild(session, inputs.place);
    if (usedAt !== undefined) recording?.noteUse(usedAt);
  }
}

/** Records the origin of a fetched context as an input of the image. */
function noteOrigin({ fetched }: BuildInputs, observer: BuildRequest["inputs"]): void {
  if (fetched?.repository !== undefined) observer?.repository(fetched.shown, fetched.repository);
  else if (fetched?.sha256 !== undefined && fetched.shown !== "-")
    observer?.url(fetched.shown, fetched.sha256);
}

/** Saves the hashes after a failed build, since they are still valid. Ignores errors: the build's error is the one to report. */
function saveQuietly(hashes: Pick<ContextHashes, "save">): void {
  try {
    hashes.save();
  } catch {
    // The next build hashes the files again.
  }
}

/** Rejects if one of Docker's checks fails, as `# check=error=true` demands, before anything is run. */
async function requireClean(
  inputs: BuildInputs,
  dockerfile: Dockerfile,
  invocation: Invocation,
): Promise<void> {
  const { checkInputs } = await import("./check.ts");
  const { isDockerRule } = await import("../../check/rules.ts");
  const { warnings } = await checkInputs(inputs, invocation);
  const problems = warnings.flatMap(({ rule, message, range }) =>
    isDockerRule(rule) && range !== undefined ? [{ message: `${message} (${rule})`, range }] : [],
  );
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}
