import { runBuild } from "../../builder/build.ts";
import { createImageFacts } from "../../builder/cache/image-facts.ts";
import { requireNetworks } from "../../builder/commands/network.ts";
import { overrideStages } from "../../builder/contexts/override-stages.ts";
import { refuseBadStages } from "../../builder/graph/stage-references.ts";
import { refuseUnsupported } from "../../builder/interpreter/refusals.ts";
import { refuseBadMounts, requireMounts } from "../../builder/mounts/mount-support.ts";
import type { BuildResult } from "../../builder/result.ts";
import { type CheckDirective, readCheckDirective } from "../../check/check-directive.ts";
import { localFileSystem } from "../../context/file-system/local-file-system.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { DockerfileError } from "../../dockerfile/problems/dockerfile-error.ts";
import { currentProcess, isAlive } from "../../process-identity.ts";
import { unlessStateDiskFull } from "../../state-failure.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { Invocation } from "../command-line/command.ts";
import { buildSession } from "../contexts/context-source.ts";
import { reportOrigin } from "../contexts/fetched-context.ts";
import { takesStandardOutput } from "../export/build-outputs.ts";
import { requireLimits } from "../run/limit-options.ts";
import { connect } from "../service/connection.ts";
import { openBuildCache, readSharing } from "./build-cache.ts";
import { createDecompress } from "./decompress.ts";
import { createGit } from "./git.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import type { Measures } from "./measures.ts";
import { readBuildOptions } from "./options/build-options.ts";
import { requirePlatform } from "./options/platform-option.ts";
import { idsOf } from "./options/secret-options.ts";
import type { Recording } from "./unchanged/recording.ts";

/** Creates what a build needs, runs it, and writes its outputs. The caller displays it. */
export async function performBuild(
  progress: Progress,
  invocation: Invocation,
  { measures, recording }: { measures: Measures | undefined; recording: Recording | undefined },
): Promise<BuildResult & { printsImage: boolean }> {
  const { runtime, globals } = invocation;
  const { jobsIn, outputs, attestations, ...options } = readBuildOptions(invocation);
  using inputs = await readBuildInputs(invocation, { log: progress.log, keepsContext: true });
  const { context, contexts, ignore, buildArgs, labels, allowsLocalFrom, mode, target } = inputs;
  const { dockerfile, directive } = await readCheckedDockerfile(inputs, invocation);
  // Not recorded: builds with checks, which read files without the recording, and those of a fetched context, which may change.
  if (!directive.turnsIntoErrors && inputs.fetched === undefined) recording?.noteContexts(context, contexts);

  const secrets = inputs.secrets.load();
  const attesting =
    attestations && (await import("../export/attest.ts")).prepareAttestations(inputs, secrets, attestations);
  if (inputs.fetched !== undefined) reportOrigin(inputs.fetched, attesting?.inputs);
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
    await requireLimits(service, options.limits);
    await requirePlatform(inputs.platform, service);
    const cache = await openBuildCache(
      connection,
      { sharing, session, log: progress.log },
      inputs,
      invocation,
    );
    finish = cache.finish;
    const { store, layers, memory } = cache;
    const result = await runBuild({
      ...options,
      ...{ mode, target, dockerfile, context, contexts, ignore, session },
      ...{ buildArgs, labels, allowsLocalFrom, uncachedStages: inputs.uncachedStages },
      ...{ service, store, layers, memory, hashes, fileStates, secrets, signal },
      jobs: jobsIn(mode),
      files: recording?.files ?? localFileSystem,
      network: inputs.network.mode,
      facts: createImageFacts(service, store.facts),
      owner: { id: currentProcess(), isAlive },
      inputs: attesting?.inputs,
      maxAddBytes: inputs.maxAddBytes,
      decompress: createDecompress(runtime.environment.PATH),
      git: createGit(runtime),
      fetchUrl: runtime.fetch,
      clock: runtime.clock,
      stop: (reason) => stopping.abort(reason),
      emit: (event) => {
        const isSkipped = event.type === "warning" && event.rule && !directive.isReported(event.rule);
        if (!isSkipped) progress.emit(event);
      },
    });
    remember(() => {
      connection.store.failedSteps.delete(session);
      hashes.save();
      if (!fileStates.isUsed) hashes.tidy();
      fileStates.save();
    }, progress.log);
    await finish();
    if (outputs.length > 0) {
      const { writeBuildOutputs } = await import("../export/write-outputs.ts");
      const attest = attesting?.attest(service, result.image, options.tags);
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
    remember(() => {
      const usedAt = connection.store.sessions.noteBuild(session, inputs.place);
      if (usedAt !== undefined) recording?.noteUse(usedAt);
    });
  }
}

/** Parses the Dockerfile. Throws for what bough does not build, and for findings of Docker's checks if these are errors. */
async function readCheckedDockerfile(
  inputs: BuildInputs,
  invocation: Invocation,
): Promise<{ dockerfile: Dockerfile; directive: CheckDirective }> {
  const { mode, buildArgs, target, contexts } = inputs;
  const parsed = parseDockerfile(inputs.dockerfile.text, inputs.dockerfile.path);
  const dockerfile = overrideStages(parsed, contexts);
  refuseUnsupported(dockerfile, inputs.network);
  refuseBadMounts(dockerfile, idsOf(inputs.secrets), contexts);
  refuseBadStages(dockerfile, { mode, buildArgs, target, contexts });
  const directive = readCheckDirective(dockerfile);
  if (directive.turnsIntoErrors) await requireClean(inputs, dockerfile, invocation);
  return { dockerfile, directive };
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
