import { instanceNetwork, requireHostNetwork, requireHosts } from "../../builder/commands/network.ts";
import { scriptFields } from "../../builder/operations/run-operation.ts";
import { supportOf } from "../../builder/service-support.ts";
import { placementScript } from "../../builder/staging/placement-script.ts";
import { instanceFiles, localFiles } from "../../builder/staging/request-fields.ts";
import type { Staged } from "../../builder/state/staged.ts";
import { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import { refuseMissing } from "../../service/operations/outcome.ts";
import type {
  ExtraHost,
  InstanceRequest,
  NetworkMode,
  ResourcesLimits,
} from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import { describeGone } from "../../terminal/quantity.ts";
import type { Surroundings } from "../command-line/command.ts";
import { requireSessionImage } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";
import { type PipedInput, readFirstInput, readPipedInput } from "./command-input.ts";
import type { FailedStep } from "./failed-step.ts";
import { type FileArgument, requireVolumes } from "./file-argument.ts";
import { requireExitCode, runInstance } from "./instance.ts";
import { currentMounts, stageLocalFiles } from "./local-files.ts";
import { type ProcessSettings, type RunProcessOptions, resolveProcessSettings } from "./process-settings.ts";
import { findOrPull, type PullPolicy } from "./pull.ts";
import { requireLimits } from "./require-limits.ts";

import { terminalFields } from "./terminal.ts";

/** A resolved request of `bough run`. */
export interface RunRequest extends RunProcessOptions, SandboxOptions {
  /** The key of the session. */
  key: string;
  source: RunSource;
  /** The title in the session's history. */
  title: string;
  timeoutSeconds: number;
  files: readonly FileArgument[];
  excludes: readonly string[];
  /** Standard input, instead of what is piped in. */
  input: Uint8Array | undefined;
  isDisposable: boolean;
  /** `--hostname`; `undefined` for the service's own. */
  hostname: string | undefined;
  /** True if the command gets the user's terminal. */
  hasTerminal: boolean;
}

/** The source of the image that a command starts from. */
export type RunSource =
  /** The session's image. */
  | { kind: "session" }
  /** An image as the user named it. `fallbackHint`: the hint about a missing image. `pull`: `never` by default. `platform`: the service's by default. */
  | { kind: "image"; image: string; fallbackHint?: Message; pull?: PullPolicy; platform?: string | undefined }
  /** The failed step of a build, which the command replaces. */
  | { kind: "step"; step: FailedStep };

/** The number of bytes that the service should keep of each output stream. */
const outputLimit = 16 * 1024 * 1024;

/** Returns the image that the command starts from. */
export async function resolveStartImage(
  { key, source, ...options }: SandboxOptions & Pick<RunRequest, "key" | "source">,
  invocation: Surroundings,
  connection: Connection,
): Promise<string> {
  await requireSupport(options, connection.service);
  switch (source.kind) {
    case "session":
      return requireSessionImage(connection.store, key);
    case "image":
      return await findOrPull(source, invocation, connection);
    case "step":
      return source.step.fields.image;
  }
}

/** Returns the failed step that the command replaces; `undefined` if it replaces none. */
export function sourceStep(source: RunSource): FailedStep | undefined {
  return source.kind === "step" ? source.step : undefined;
}

/**
 * Builds the request, uploads the local files, reads piped input, and passes the request to `action`. If the service has lost files that
 * were uploaded before, they are sent again, and `action` is called a second time. With `takesLaterInput`, `action` gets the rest of the
 * input; otherwise all of it is read before.
 */
export async function withInstance<Result>(
  request: RunRequest,
  image: string,
  invocation: Surroundings,
  connection: Connection,
  action: (instance: InstanceRequest, laterInput?: PipedInput["rest"]) => Promise<Result>,
  { takesLaterInput = false }: { takesLaterInput?: boolean } = {},
): Promise<Result> {
  const { runtime, log } = invocation;
  const step = sourceStep(request.source);
  const surroundings = await resolveProcessSettings({ ...request, step }, image, connection);
  const staged = await stageLocalFiles(request.files, {
    workingDirectory: runtime.workingDirectory,
    cwd: surroundings.cwd,
    excludes: request.excludes,
    signal: runtime.signal,
    warn: log.warn,
  });
  const input = await findInput(request, takesLaterInput, invocation);
  const mounts = step === undefined ? [] : await currentMounts(step, invocation);
  const whole = { ...request, surroundings, mounts };
  const attempt = async () =>
    action(await makeInstance(whole, image, staged, input, invocation, connection), input?.rest);
  try {
    return await attempt();
  } catch (error) {
    const missing = error instanceof NotFoundError ? forgetUploads(staged, connection) : 0;
    if (missing === 0) throw error;
    log.info(`${describeGone(missing)}: sending again`);
    return await attempt();
  }
}

async function findInput(
  { input }: RunRequest,
  takesLaterInput: boolean,
  { runtime, log }: Surroundings,
): Promise<PipedInput | undefined> {
  if (input === undefined && takesLaterInput) return await readFirstInput(runtime);
  const first = input ?? (await readPipedInput(runtime, log));
  return first && { first, rest: undefined };
}

async function makeInstance(
  request: RunRequest & { surroundings: ProcessSettings; mounts: readonly InstanceMount[] },
  image: string,
  staged: Staged,
  input: PipedInput | undefined,
  { runtime, log }: Surroundings,
  { service }: Connection,
): Promise<InstanceRequest> {
  const fields: Partial<FailedStep["fields"]> = sourceStep(request.source)?.fields ?? {};
  const { entries, copies } = fields;
  const ids = await service.uploadFiles(localFiles(staged.values()));
  const files = {
    ...fields.files,
    ...instanceFiles(staged, ids, { times: false, links: false, attributes: false }),
  };
  const all = [...request.mounts, ...request.volumes];
  const placed = { files, ...(entries && { entries }), ...(copies && { copies }) };
  const limits = request.limits === undefined ? {} : { resources_limits: request.limits };
  const instance: InstanceRequest = {
    image,
    ...limits,
    ...request.surroundings,
    ...placed,
    ...(all.length > 0 && { mounts: all }),
    timeout: request.timeoutSeconds,
    disposable: request.isDisposable,
    ...(request.hostname !== undefined && { hostname: request.hostname }),
    ...(await historyOf(request, service)),
    truncate_output_at: outputLimit,
    ...instanceNetwork(request, fields),
    ...stdinField(input),
    ...(request.hasTerminal ? terminalFields(runtime, request.surroundings.env) : {}),
  };
  // The API places only regular files: empty directories and links need a separate command.
  const script = placementScript(staged);
  if (script === "") return instance;
  const outcome = await runInstance(
    {
      image,
      ...limits,
      ...(await scriptFields(script, placed, { ...request, service, place: "/.bough-files.sh" })),
    },
    { service, signal: runtime.signal, log },
  );
  refuseMissing(outcome);
  if (requireExitCode(outcome, request.timeoutSeconds) !== 0 || outcome.image === undefined) {
    throw new BoughError(
      wording`the links and directories of ${{ option: "file" }} could not be created: ${outcome.stderr.text.trim()}`,
    );
  }
  const { entries: _, copies: __, host_files: ___, ...rest } = instance;
  return { ...rest, image: outcome.image, files: {} };
}

function stdinField(input: PipedInput | undefined): Pick<InstanceRequest, "stdin"> {
  if (input === undefined || (input.first.byteLength === 0 && input.rest === undefined)) return {};
  return { stdin: { bytes: input.first, ...(input.rest !== undefined && { close: false }) } };
}

/** Returns the history line of the resulting image, for services that keep a history: those that report configurations. */
async function historyOf(
  { title, isDisposable }: Pick<RunRequest, "title" | "isDisposable">,
  { capabilities }: Connection["service"],
): Promise<Pick<InstanceRequest, "history">> {
  const isKept = capabilities.has("config") && (await capabilities.extensions()).has("history");
  return isDisposable || !isKept ? {} : { history: [{ created_by: title, comment: "bough run" }] };
}

/** Removes the files from the list of known uploads. Returns how many there were. */
function forgetUploads(staged: Staged, { store }: Connection): number {
  const known = localFiles(staged.values()).filter(({ sha256 }) => store.uploads.get(sha256) !== undefined);
  const hashes = new Set(known.map(({ sha256 }) => sha256));
  for (const sha256 of hashes) store.uploads.delete(sha256);
  return hashes.size;
}

/** Options that not every service supports. */
interface SandboxOptions {
  limits: ResourcesLimits | undefined;
  /** Directories of this machine. */
  volumes: readonly InstanceMount[];
  network: NetworkMode;
  /** `--add-host`. */
  hosts: readonly ExtraHost[];
}

/** Throws if the service does not support the options. */
async function requireSupport(
  { limits, volumes, network, hosts }: SandboxOptions,
  service: Connection["service"],
): Promise<void> {
  await requireLimits(service, limits);
  await requireVolumes(service, volumes);
  const supports = supportOf(service);
  await requireHosts(hosts, service, supports);
  if (network === "host") await requireHostNetwork(supports);
}
