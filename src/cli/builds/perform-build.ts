import type { Emit } from "../../builder/events.ts";
import type { BuildResult } from "../../builder/result.ts";
import { missingParts } from "../../builder/stages/step-record.ts";
import { asksForPlatforms } from "../../builder/state/platform.ts";
import { type Finding, lineOf } from "../../check/rules.ts";
import { BoughError, withHint } from "../../errors.ts";
import type { Platform } from "../../image/platform.ts";
import { wording } from "../../messages/wording.ts";
import { sha256Of } from "../../sha256.ts";
import type { Log } from "../../terminal/log.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { Invocation } from "../command-line/command.ts";
import { buildSession } from "../contexts/context-group.ts";
import { reportOrigin } from "../contexts/fetched-context.ts";
import {
  type BuildOutput,
  isForDaemon,
  isPushed,
  requireCompleteImage,
  requirePlatformsFit,
  takesStandardOutput,
} from "../export/build-outputs.ts";
import { epochOf } from "../export/times.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { chooseServiceFor, serviceName } from "../service/choice.ts";
import { openConnections } from "../service/connections.ts";
import { enterBuild } from "../sessions/running-builds.ts";
import { readSigner } from "../signing/read-signer.ts";
import { createCommandCaches, readSharing } from "./build-cache.ts";
import { type BuildService, chooseServices, requireSupport } from "./build-services.ts";
import { readCheckedDockerfile } from "./checked-dockerfile.ts";
import type { FoundOutputs } from "./daemon-output.ts";
import { runAndDeliver } from "./deliver-result.ts";
import { readBuildInputs } from "./inputs.ts";
import type { Measures } from "./measures.ts";
import { readBuildOptions } from "./options/build-options.ts";
import { type BuildsTogether, openServices, type PlannedBuild, prepareBuild } from "./prepare-build.ts";
import { imagesOf, remember, runAndSave } from "./prepared-build.ts";
import { type Recording, startRecording } from "./recording.ts";
import type { BuildInvocation } from "./request.ts";
import { openLock } from "./result-files.ts";

/** `buildx`: the keys of docker buildx about the build, if a metadata file is written. */
export type Performed = BuildResult & {
  printsImage: boolean;
  buildx: Readonly<Record<string, unknown>> | undefined;
};

/** Performs a build and records it for `bough history`. The caller displays it. */
export async function performBuild(
  progress: Progress,
  invocation: BuildInvocation,
  measures: Measures | undefined,
  together?: BuildsTogether,
  recording = startRecording(invocation, { isBaked: together !== undefined }),
): Promise<Performed> {
  const emit: Emit = (event) => {
    recording.note(event);
    // The reasons are recorded of every build, and shown if they are asked for.
    if (event.type !== "explained" || invocation.values.flag("explain")) progress.emit(event);
  };
  await using _connections = together === undefined ? invocation.keyed?.connections : undefined;
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

/** Chooses what a build needs, prepares it, runs it, and writes its outputs. */
async function prepareAndRun(
  progress: Progress,
  invocation: BuildInvocation,
  { measures, together, recording }: Performing,
): Promise<Performed> {
  const { runtime, linked, keyed } = invocation;
  const { log } = progress;
  const options = readBuildOptions(invocation);
  const { attestations } = options;
  const destination = await findDestination(options.outputs, runtime, log);
  const { outputs } = destination;
  const opened = await openLock(invocation);
  opened?.requireWritable();
  using inputs = await readBuildInputs(invocation, { log, keepsContext: true, lock: opened?.lock });
  const { dialect, platforms } = inputs;
  const chosen = chooseServices(invocation, platforms);
  const session = buildSession(inputs.place);
  recording.begin(inputs, {
    session,
    service: serviceName(chooseServiceFor(invocation.runtime, chosen[0].globals)),
  });
  if (runtime.isPlugin === true)
    (await import("./metadata/local-state.ts")).noteForDocker(recording, inputs, invocation, log);
  const { dockerfile, needed, directive, findings } = await readCheckedDockerfile(inputs, invocation, opened);
  destination.daemon?.requireKeeps({
    "images of several platforms": platforms.length > 1,
    "provenance and packages":
      attestations?.provenance?.isInlineOnly === false || attestations?.sbom !== undefined,
  });
  if (!dialect.keepsConfiguration) requireCompleteImage(missingParts(dockerfile), outputs, invocation.values);

  const isFound = reportFindings(findings, progress.emit);

  const secrets = await inputs.secrets.load();
  recording.hide(secrets);
  const sign = await readSigner(invocation, isPushed(outputs), log, together?.signers);
  const attesting =
    attestations &&
    (await import("../export/attest.ts")).prepareAttestations(
      inputs,
      secrets,
      attestations,
      async (...scanned) =>
        (await import("../scan/scan-image.ts")).scanImage(...scanned, { ...invocation, log }),
    );
  if (inputs.fetched !== undefined)
    reportOrigin(inputs.fetched, recording.observe(attesting?.inputsFor(platforms[0])));
  const sharing = await readSharing(invocation, inputs);
  await using own = new AsyncDisposableStack();
  const shared = together?.caches ?? own.use(createCommandCaches(log));
  const connections =
    together?.connections ?? keyed?.connections ?? own.use(openConnections({ runtime, log }, measures));
  const surroundings = { invocation, log, together, connections };
  const services = await openServices(chosen, inputs, options.jobsIn, surroundings);
  const [main] = services;
  using owner = enterBuild(stateDirectory(runtime), session);
  recording.setOwner(owner.id);
  together?.sessions.add(session);
  const cacheRealm = realmOf(sharing?.keys.trusted);
  const observerOf = (platform: Platform | undefined) => recording.observe(attesting?.inputsFor(platform));
  let failed: BuildService | undefined;
  try {
    if (platforms.length > 1) requirePlatformsFit(outputs);
    await requireSupport(services, needed, inputs, options);
    const planned: PlannedBuild = {
      ...{ inputs, needed, options, outputs, sharing, shared, observerOf },
      asked: { dockerfile, linked, session, secrets, cacheRealm, pins: keyed?.pins },
      common: { owner, signal: connections.signal, daemonImages: destination.images },
      lock: opened?.lock,
      noteScanTargets: attesting?.noteScanTargets,
      confirmKey: async () => keyed?.confirm(),
      stop(service, reason) {
        failed ??= service;
        connections.stop(reason);
      },
      emit({ connection }, event) {
        const isSkipped =
          event.type === "warning" &&
          event.rule !== undefined &&
          (!directive.isReported(event.rule, event.line) || isFound(event.rule, event.line));
        const isElsewhere = event.type === "tagged" && services.length > 1;
        if (!isSkipped)
          progress.emit(isElsewhere ? { ...event, service: connection.service.address } : event);
      },
    };
    const prepared = await prepareBuild(services, planned, surroundings);
    const imagesIn = (result: BuildResult) => imagesOf(result, platforms, services);
    const { result, exported } = await runAndDeliver({
      async run() {
        const written = async () => (together === undefined ? shared.write() : undefined);
        const how = { signal: runtime.signal, written, log };
        const result = await runAndSave(prepared, { platforms, inputsFor: observerOf }, how);
        if (outputs.length > 0) requireCompleteImage(result.missing, outputs, invocation.values);
        return result;
      },
      async deliver(result) {
        if (outputs.length === 0) return [];
        const { writeBuildOutputs } = await import("./write-outputs.ts");
        const images = imagesIn(result).map(({ uuid, platform, service: { connection } }) => ({
          ...{ uuid, from: connection },
          attest: attesting?.attest(connection, uuid, options.tags, platform),
        }));
        const timed = dialect.hasSourceDate ? withEpoch(outputs, epochOf(dockerfile)) : outputs;
        const directories = together?.directories ?? new Map();
        const isMap = images.length > 1 || asksForPlatforms(inputs.buildArgs);
        return writeBuildOutputs(
          timed,
          { images, isMap, sign, topAnnotations: keyed?.annotations, directories },
          invocation,
          log,
          destination.daemon?.daemon,
        );
      },
      imagesOf: imagesIn,
      mayRepeat: !takesStandardOutput(outputs),
    });
    destination.kept?.say(result, log);
    for (const { uuid, service } of imagesIn(result)) await service.connection.requireKept(uuid);
    // Builds at once wait for each other, so that none loses what another one adds.
    if (opened !== undefined) main.connection.store.atomically(() => opened.save(inputs, log));
    const writesMetadata = together?.writesMetadata ?? invocation.values.text("metadata-file") !== undefined;
    const buildx = writesMetadata
      ? await (await import("./metadata/buildx-metadata.ts")).describeForBuildx(
          inputs,
          recording,
          invocation,
          opened,
        )
      : undefined;
    return { ...result, exported, printsImage: !takesStandardOutput(outputs), buildx };
  } catch (error) {
    throw await conclude(error, session, failed ?? main, invocation);
  } finally {
    for (const { connection } of services)
      remember(() => connection.store.sessions.noteBuild(session, inputs.place));
  }
}

/** Finds docker's daemon for the outputs that go there, and in the place of docker's builder for bases, too. */
async function findDestination(
  outputs: readonly BuildOutput[],
  runtime: Runtime,
  log: Log,
): Promise<FoundOutputs> {
  if (!isForDaemon(outputs) && runtime.isPlugin !== true) return { outputs };
  return (await import("./daemon-output.ts")).findDaemonFor(outputs, runtime, log);
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
    const { rule, skipped } = finding;
    const message = wording`${withHint(finding)} (${rule})`;
    emit({ type: "warning", rule, message, line: lineOf(finding), ...(skipped && { skipped }) });
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
