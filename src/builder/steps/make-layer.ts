import { posix, relative } from "node:path";
import { pathWithin } from "../../context/file-system/display-path.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { isStateDiskFull } from "../../state-failure.ts";
import { keyOfCache, originOfCache } from "../cache/cache-origin.ts";
import type { Explanation } from "../cache/step-inputs.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import { hostNameKey, hostNameOf } from "../commands/network.ts";
import { findHome } from "../docker/variables.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { lineNamedIn, PlacementError } from "../location.ts";
import { cacheIdOf } from "../mounts/mount-spec.ts";
import { prepareMounts } from "../mounts/prepare-mounts.ts";
import { unexecutable } from "../mounts/run-mounts.ts";
import { FailedStepError, type StepEnvironment } from "../operations/failed-step.ts";
import { collectGarbage } from "../operations/gc.ts";
import { cannotBeStarted } from "../operations/image-contents.ts";
import { type FollowedOutcome, finishOperations, requireSuccess } from "../operations/operation.ts";
import { runOperation } from "../operations/run-operation.ts";
import { resolveUser } from "../owners/ownership.ts";
import { placementKey, placeStaged } from "../staging/placement.ts";
import { linesOfLayer } from "../state/history.ts";
import type { Layer } from "../state/layer.ts";
import { joinOrigins, type LayerOrigin } from "../state/layer-origin.ts";
import type { StageState } from "../state/state.ts";
import { configureLayer } from "./configure-stage.ts";
import { withScriptFile } from "./script-file.ts";
import { requestOf, type Step } from "./step.ts";

/** Runs the command of a step and stores its image as the layer of this chain hash. */
export async function makeLayer(
  hash: string,
  given: Step,
  remembered: RememberedStep,
  stage: StageState,
  build: BuildJob,
): Promise<Layer> {
  const { layers, store } = build.services;
  const key = `run ${hash}`;
  explainStep(given, remembered, hash, stage, build);
  // A user who asked only for the explanation has stopped the build.
  build.services.signal.throwIfAborted();
  // A request has more fields where the service is the API: asked while files are sent.
  build.services.supports.userNumbers().catch(() => undefined);
  const step = await withScriptFile(given, build.services.supports);
  const isRun = step.kind === "run";
  const user = isRun ? await resolveUser(stage, step.line, build) : undefined;
  const env = { ...(isRun ? await findHome(stage, build) : {}), ...step.env };
  const mounting = await prepareMounts(step.mounts, { hash, stage, user }, build);
  let place: StepEnvironment | undefined;
  const outcome = await mounting.retryAfterLoss(async () => {
    const placed = await placeStaged(hash, mounting.stage, build, earlierImage(given, build));
    const copies = await step.copies?.();
    const placing = { ...placed, ...(copies && { copies }), timeout: build.asked.commands.timeoutSeconds };
    const asked = requestOf({ ...step, env }, user, placing);
    const request = await mounting.addTo(asked, step);
    const beside = { ...(await linesToSend(stage, build)), ...(await networkFiles(step, build)) };
    const whole = { ...withEntries(request, step), ...beside };
    const lacksMounts = step.mounts !== undefined && whole.mounts === undefined;
    // A script that wraps the command goes to its directory itself.
    place = { request: { ...whole, cwd: asked.cwd }, user, lacksMounts };
    return await runOperation(whole, { key, title: step.title, makesLayer: true }, build);
  });
  collectGarbage(stage.staged.size);
  const result = await resultOf(outcome, { step, place }, stage, build);
  return store.atomically(() => {
    finishOperations([key, placementKey(hash)], build);
    const { operation, served, imageBytes: bytes } = outcome;
    return layers.put({
      hash,
      image: result,
      parent: stage.layer,
      kind: step.kind === "files" ? "copy" : step.kind,
      title: step.title,
      operation,
      origin: originOfStep(step, stage, build),
      seconds: served?.seconds,
      bytes,
    });
  });
}

/** Returns the image that this step had in the latest build of this Dockerfile: most of its files may be the same. */
function earlierImage({ ordinal }: Step, { services: { layers, memory } }: BuildJob): string | undefined {
  const hash = memory.earlierHash(ordinal);
  return hash === undefined ? undefined : layers.imageHere(hash);
}

/** Whoever made a part of it could have put anything into it. An image that is only copied from is named by its contents. */
function originOfStep(
  { sources = [], mounts }: Step,
  { layer }: StageState,
  { asked, services: { store } }: BuildJob,
): LayerOrigin {
  const layers = [layer, ...sources, ...(mounts?.losable ?? [])];
  const caches = (mounts?.mounts ?? []).flatMap(({ spec, source }) =>
    spec.type === "cache" && source === undefined
      ? [{ ...spec, id: cacheIdOf(spec.id, asked.buildArgs) }]
      : [],
  );
  return joinOrigins([
    ...layers.flatMap((part) => ("isRemembered" in part ? [] : [part.origin])),
    ...caches.map((cache) => originOfCache(store.facts, keyOfCache(cache, asked.cacheRealm))),
  ]);
}

async function linesToSend(stage: StageState, build: BuildJob): Promise<Pick<InstanceRequest, "history">> {
  if (!(await build.services.supports.stored()).origin) return {};
  const history = linesOfLayer(stage, build.asked.buildArgs);
  return history === undefined ? {} : { history };
}

/** Docker's host name, and its network files: read-only, as changes to them would be in no layer. */
async function networkFiles(
  { kind }: Step,
  build: BuildJob,
): Promise<Pick<InstanceRequest, "readonly_network_files" | "hostname">> {
  const hostname = hostNameOf(build.asked);
  if (kind !== "run" || hostname === undefined) return {};
  return (await build.services.supports.readonlyNetworkFiles())
    ? { hostname, readonly_network_files: true }
    : hostNameKey(build.asked).length > 0
      ? { hostname }
      : {};
}

/** Makes a layer of files by entries of the request, so that the image needs no shell. */
function withEntries(request: InstanceRequest, { kind }: Step): InstanceRequest {
  if (kind !== "files") return request;
  const { args: _, ...rest } = request;
  return { ...rest, command: "", shell: false, entries: request.entries ?? {} };
}

async function resultOf(
  outcome: FollowedOutcome,
  { step, place }: { step: Step; place: StepEnvironment | undefined },
  stage: StageState,
  build: BuildJob,
): Promise<string> {
  try {
    return requireSuccess(outcome, build.asked.commands.timeoutSeconds, unexecutable(step.mounts));
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    const missing =
      placementError(outcome, step, stage) ?? (await missingShell(outcome, step, stage, build.services));
    throw missing ?? (await failedStep(error, place, outcome, stage, build));
  }
}

/** Returns the error itself if the step can't be kept for inspection, because the disk of bough's state is full. */
async function failedStep(
  error: BoughError,
  place: StepEnvironment | undefined,
  outcome: FollowedOutcome,
  stage: StageState,
  build: BuildJob,
): Promise<BoughError> {
  try {
    return new FailedStepError(error, place, await configureLayer(stage, build, "step"), outcome);
  } catch (cause) {
    if (isStateDiskFull(cause)) return error;
    throw cause;
  }
}

/** Returns an error if the step never ran or has no command of its own: the fault is in what was to be put in place for it. */
function placementError(
  outcome: OperationOutcome,
  { kind, directive, copies, line }: Step,
  { staged }: StageState,
): PlacementError | undefined {
  const { status, error, operation } = outcome;
  if (copies !== undefined && status === "FAILED" && error !== undefined)
    return new PlacementError(`${error} (operation ${operation})`, lineNamedIn(error, staged) ?? line);
  if (status === "FAILED" && error !== undefined) {
    // The error may well be about the program itself, which can't be started.
    const [, form, program = ""] = directive;
    const isProgram = (path: string) => form === "exec" && posix.basename(path) === posix.basename(program);
    const line = lineNamedIn(error, new Map([...staged].filter(([path]) => !isProgram(path))));
    return line === undefined ? undefined : new PlacementError(`${error} (operation ${operation})`, line);
  }
  if (kind !== "commit" || !cannotBeStarted(outcome)) return undefined;
  const message = `the image has no shell (/bin/sh), which bough needs to make a layer of the staged files (operation ${operation})`;
  return new PlacementError(message, [...staged.values()].at(-1)?.line, {
    hint: "Start from an image that has a shell, or end with a RUN in exec form of a program that the image has.",
  });
}

/**
 * Returns an error if a command was not started because the image has no shell, so that a shell in the image is impossible, too.
 * Does not ask a service that returned no configuration of the image.
 */
async function missingShell(
  outcome: OperationOutcome,
  { command, mounts }: Pick<Step, "command" | "mounts">,
  { layer, staged }: Pick<StageState, "layer" | "staged">,
  { facts, supports }: BuildServices,
): Promise<BoughError | undefined> {
  if (!cannotBeStarted(outcome)) return undefined;
  const isScripted = mounts !== undefined && !(await supports.mounts()).secrets;
  if (!isScripted && (command.form !== "shell" || !supports.describesImages())) return undefined;
  if (staged.has("/bin/sh") || staged.get("/bin")?.type === "symlink") return undefined;
  if ((await facts.isFile(layer.image, "/bin/sh")) || !supports.inspection()) return undefined;
  return new BoughError(
    `the image has no shell (/bin/sh) to run this with (operation ${outcome.operation})`,
    {
      hint: isScripted
        ? wording`The service does not support mounts, and bough's replacement needs /bin/sh.${wording` Build on the embedded engine with ${{ option: "local" }}.`}`
        : 'Copy one into the image, or name a program that it has: RUN ["/program", "argument"].',
    },
  );
}

/** To compare more files than these for the record of a build alone would take time that one feels. */
const maxRecordedFiles = 10_000;

/** Reports, for `--explain` and for the record of the build, why a step that is about to run is not taken from the cache. */
function explainStep(
  { title, line, source, mounts }: Pick<Step, "title" | "line" | "source" | "mounts">,
  step: RememberedStep,
  hash: string,
  stage: StageState,
  build: BuildJob,
): void {
  const { memory } = build.services;
  const { uncachedStages } = build.asked;
  const { useCache } = build;
  const files = stage.staged.size + (mounts?.files.size ?? 0);
  if (!memory.explains && files > maxRecordedFiles) return;
  if (!useCache) {
    const reason = uncachedStages.length > 0 ? "--no-cache-filter" : "--no-cache";
    build.emit({ type: "explained", title, line, explanation: { reason } });
    return;
  }
  const titles = build.layerTitles();
  const withPath = (explanation: Explanation): Explanation =>
    explanation.reason === "source" && source?.changed !== undefined
      ? { ...explanation, path: source.changed }
      : explanation;
  const explanation = withPath(withNames(memory.explain(step, titles), stage, build));
  const found = memory.explains ? memory.compareShared(step, hash, titles) : undefined;
  const shared = found && { scope: found.scope, explanation: withNames(found.difference, stage, build) };
  build.emit({ type: "explained", title, line, explanation, ...(shared && { shared }) });
}

/** Adds the path in the context to a file's difference, and the instruction's title to a parent's. */
function withNames(explanation: Explanation, stage: StageState, build: BuildJob): Explanation {
  switch (explanation.reason) {
    case "file": {
      const entry = stage.staged.get(explanation.path);
      if (entry?.type !== "file" || entry.content.kind !== "local") return explanation;
      const source = sourceOf(entry.content.absolutePath, build);
      return source === undefined ? explanation : { ...explanation, source };
    }
    case "parent": {
      const title = build.services.layers.titleOf(explanation.now);
      return title === undefined ? explanation : { ...explanation, title };
    }
    default:
      return explanation;
  }
}

/**
 * Returns a file's path, relative to the build context. Returns `undefined` for a file of a `--build-context` that was fetched: the
 * user does not know the place where bough keeps it.
 */
function sourceOf(path: string, { source, asked }: BuildJob): string | undefined {
  const directories = [source.context];
  for (const each of asked.contexts.values())
    if (each.kind === "directory" && each.source.kind === "local") directories.push(each.source.context);
  const isGiven = directories.some(({ realPath }) => pathWithin(realPath, path) !== undefined);
  return isGiven ? relative(source.context.realPath, path) : undefined;
}
