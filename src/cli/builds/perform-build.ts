import type { Emit } from "../../builder/events.ts";
import type { BuildResult } from "../../builder/result.ts";
import { asksForPlatforms } from "../../builder/state/platform.ts";
import { BoughError } from "../../errors.ts";
import type { Platform } from "../../image/platform.ts";
import { sha256Of } from "../../sha256.ts";
import type { Log } from "../../terminal/log.ts";
import type { Progress } from "../../terminal/progress.ts";
import {
  type BuildOutput,
  isForDaemon,
  requireCompleteImage,
  requirePlatformsFit,
  takesStandardOutput,
} from "../export/build-outputs.ts";
import { epochOf } from "../export/times.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { openConnections } from "../service/connections.ts";
import { registerBuild } from "../sessions/running-builds.ts";
import { createCommandCaches } from "./build-cache.ts";
import { type BuildService, requireSupport } from "./build-services.ts";
import { checkBeforeBuild } from "./check-before-build.ts";
import type { FoundOutputs } from "./daemon-output.ts";
import { runAndDeliver } from "./deliver-result.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import type { Measures } from "./measures.ts";
import { type BuildOptions, readBuildOptions } from "./options/build-options.ts";
import { type BuildsTogether, openServices, type PlannedBuild, prepareBuild } from "./prepare-build.ts";
import { imagesOf, remember, runAndSave } from "./prepared-build.ts";
import { type Recording, startRecording } from "./recording/recording.ts";
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
    if (event.type !== "explained" || invocation.options.explain === true) progress.emit(event);
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
  const { runtime, keyed } = invocation;
  const { log } = progress;
  const options = readBuildOptions(invocation);
  const destination = await findDestination(options.outputs, runtime, log);
  const { outputs } = destination;
  const opened = await openLock(invocation);
  opened?.requireWritable();
  using inputs = await readBuildInputs(invocation, { log, keepsContext: true, lock: opened?.lock });
  const { platforms } = inputs;
  const given = { inputs, options, destination, opened };
  const checked = await checkBeforeBuild(given, progress, invocation, { recording, together });
  const { session, attesting, sharing } = checked;
  await using own = new AsyncDisposableStack();
  const shared = together?.caches ?? own.use(createCommandCaches(log));
  const connections =
    together?.connections ?? keyed?.connections ?? own.use(openConnections({ runtime, log }, measures));
  const surroundings = { invocation, log, together, connections };
  const services = await openServices(checked.chosen, inputs, options.jobsIn, surroundings);
  const [main] = services;
  using owner = registerBuild(stateDirectory(runtime), session);
  recording.setOwner(owner.id);
  together?.sessions.add(session);
  const cacheRealm = realmOf(sharing?.keys.trusted);
  const observerOf = (platform: Platform | undefined) => recording.observe(attesting?.inputsFor(platform));
  let failed: BuildService | undefined;
  try {
    if (platforms.length > 1) requirePlatformsFit(outputs);
    await requireSupport(services, checked.needed, inputs, options);
    const planned: PlannedBuild = {
      ...{ inputs, needed: checked.needed, options, outputs, sharing, shared, observerOf },
      asked: {
        ...{ dockerfile: checked.dockerfile, secrets: checked.secrets, session, cacheRealm },
        ...{ linked: invocation.linked, pins: keyed?.pins },
      },
      common: { owner, signal: connections.signal, daemonImages: destination.images },
      lock: opened?.lock,
      noteScanTargets: attesting?.noteScanTargets,
      confirmKey: async () => keyed?.confirm(),
      stop(service, reason) {
        failed ??= service;
        connections.stop(reason);
      },
      emit({ connection }, event) {
        const isElsewhere = event.type === "tagged" && services.length > 1;
        if (checked.isShown(event))
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
        if (outputs.length > 0) requireCompleteImage(result.missing, outputs, invocation.options);
        return result;
      },
      async deliver(result) {
        const built = { images: imagesIn(result), inputs, options, destination, checked };
        return outputs.length === 0 ? [] : writeOutputs(built, invocation, log, together);
      },
      imagesOf: imagesIn,
      mayRepeat: !takesStandardOutput(outputs),
    });
    destination.kept?.say(result, log);
    for (const { uuid, service } of imagesIn(result)) await service.connection.requireKept(uuid);
    // Builds at once wait for each other, so that none loses what another one adds.
    if (opened !== undefined) main.connection.store.atomically(() => opened.save(inputs, log));
    const writesMetadata = together?.writesMetadata ?? invocation.options["metadata-file"] !== undefined;
    const describe = async () => (await import("./metadata/buildx-metadata.ts")).describeForBuildx;
    const buildx = writesMetadata
      ? await (await describe())(inputs, recording, invocation, opened)
      : undefined;
    return { ...result, exported, printsImage: !takesStandardOutput(outputs), buildx };
  } catch (error) {
    throw await conclude(error, session, failed ?? main, invocation);
  } finally {
    for (const { connection } of services)
      remember(() => connection.store.sessions.setContext(session, inputs.location));
  }
}

interface BuiltImages {
  images: ReturnType<typeof imagesOf>;
  inputs: BuildInputs;
  options: BuildOptions;
  destination: FoundOutputs;
  checked: Awaited<ReturnType<typeof checkBeforeBuild>>;
}

async function writeOutputs(
  { images, inputs, options, destination, checked }: BuiltImages,
  invocation: BuildInvocation,
  log: Log,
  together: BuildsTogether | undefined,
) {
  const { attesting, sign, dockerfile } = checked;
  const { writeBuildOutputs } = await import("./write-outputs.ts");
  const written = images.map(({ uuid, platform, service: { connection } }) => ({
    ...{ uuid, from: connection },
    attest: attesting?.attest(connection, uuid, options.tags, platform),
  }));
  const { outputs, daemon } = destination;
  return writeBuildOutputs(
    inputs.dialect.hasSourceDate ? withEpoch(outputs, epochOf(dockerfile)) : outputs,
    {
      ...{ images: written, sign, topAnnotations: invocation.keyed?.annotations },
      isMap: images.length > 1 || asksForPlatforms(inputs.buildArgs),
      directories: together?.directories ?? new Map(),
    },
    invocation,
    log,
    daemon?.daemon,
  );
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
  invocation: BuildInvocation,
): Promise<unknown> {
  const { concludeFailure, ServiceFailure, withDebugHint } = await import("./failed-result.ts");
  const described = withDebugHint(error, {
    session,
    globals,
    store: connection.store,
    opensShell: invocation.options["on-error"] === "shell",
  });
  const concluded = await concludeFailure(described, session, connection, { ...invocation, globals });
  return option !== undefined && concluded instanceof BoughError
    ? new ServiceFailure(concluded, globals)
    : concluded;
}
