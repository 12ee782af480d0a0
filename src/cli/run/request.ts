import { networkFields, ownOperationNetwork, requireHostNetwork } from "../../builder/commands/network.ts";
import { placementScript } from "../../builder/staging/placement.ts";
import type { Staged } from "../../builder/staging/staged.ts";
import { BoughError } from "../../errors.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import { refuseMissing } from "../../service/operations/outcome.ts";
import type { LocalFile } from "../../service/service.ts";
import type { InstanceFile, InstanceRequest, NetworkMode, ResourcesLimits } from "../../service/types.ts";
import { formatCount } from "../../terminal/quantity.ts";
import type { Invocation } from "../command-line/command.ts";
import { requireSessionImage, resolveImageArgument } from "../images/image-argument.ts";
import { readPipedInput } from "../process/piped-input.ts";
import type { Connection } from "../service/connection.ts";
import type { FileArgument } from "./file-argument.ts";
import { requireExitCode, runInstance } from "./instance.ts";
import { requireLimits } from "./limit-options.ts";
import { stageLocalFiles } from "./local-files.ts";
import { findSurroundings, type GivenSurroundings, type Surroundings } from "./surroundings.ts";

/** What `bough run` was asked for. */
export interface RunRequest extends GivenSurroundings {
  key: string;
  /** Instead of the session's image. */
  use: string | undefined;
  /** For the session's history. */
  title: string;
  timeoutSeconds: number;
  limits: ResourcesLimits | undefined;
  files: readonly FileArgument[];
  excludes: readonly string[];
  network: NetworkMode;
  isDisposable: boolean;
}

/** Bytes of each output stream that the service is asked to keep. */
const outputLimit = 16 * 1024 * 1024;

/** The image that the command begins with. */
export async function startImage(
  request: Pick<RunRequest, "key" | "use" | "limits">,
  { service, store }: Connection,
): Promise<string> {
  await requireLimits(service, request.limits);
  return request.use === undefined
    ? requireSessionImage(store, request.key)
    : await resolveImageArgument(service, request.use);
}

/**
 * Puts the request together, uploads the local files, reads what is piped in, and hands all of it to `action`. Where the
 * service turns out to have lost files that were uploaded before, they are sent again, and `action` is called once more.
 */
export async function withInstance<Result>(
  request: RunRequest,
  image: string,
  invocation: Invocation,
  connection: Connection,
  action: (instance: InstanceRequest) => Promise<Result>,
): Promise<Result> {
  const { runtime, log } = invocation;
  if (request.network === "host") await requireHostNetwork(connection.service);
  const surroundings = await findSurroundings(request, image, connection);
  const staged = await stageLocalFiles(request.files, {
    workingDirectory: runtime.workingDirectory,
    cwd: surroundings.cwd,
    excludes: request.excludes,
    signal: runtime.signal,
    warn: log.warn,
  });
  const stdin = await readPipedInput(runtime, log);
  const attempt = async () =>
    action(await makeInstance({ ...request, surroundings }, image, staged, stdin, invocation, connection));
  try {
    return await attempt();
  } catch (error) {
    const missing = error instanceof NotFoundError ? forgetUploads(staged, connection) : 0;
    if (missing === 0) throw error;
    log.info(`the service no longer has ${formatCount(missing, "uploaded file")}: sending again`);
    return await attempt();
  }
}

async function makeInstance(
  request: RunRequest & { surroundings: Surroundings },
  image: string,
  staged: Staged,
  stdin: Uint8Array | undefined,
  { runtime, log }: Invocation,
  { service }: Connection,
): Promise<InstanceRequest> {
  const files = instanceFiles(staged, await service.uploadFiles(localFiles(staged)));
  const limits = request.limits === undefined ? {} : { resources_limits: request.limits };
  const instance: InstanceRequest = {
    image,
    ...limits,
    ...request.surroundings,
    files,
    timeout: request.timeoutSeconds,
    disposable: request.isDisposable,
    truncate_output_at: outputLimit,
    ...networkFields(request.network),
    ...(stdin === undefined || stdin.byteLength === 0
      ? {}
      : { stdin: { value: Buffer.from(stdin).toString("base64"), encoding: "base64" } }),
  };
  // The API puts regular files in place: empty directories and links take a command of their own.
  const script = placementScript(staged);
  if (script === "") return instance;
  const outcome = await runInstance(
    {
      image,
      ...limits,
      command: "sh",
      args: ["-s"],
      shell: false,
      stdin: { value: Buffer.from(script).toString("base64"), encoding: "base64" },
      cwd: "/",
      files,
      timeout: request.timeoutSeconds,
      disposable: false,
      ...ownOperationNetwork(request.network),
    },
    { service, signal: runtime.signal, log },
  );
  refuseMissing(outcome);
  if (requireExitCode(outcome, request.timeoutSeconds) !== 0 || outcome.image === undefined) {
    throw new BoughError(
      `the links and directories of --file could not be made: ${outcome.stderr.text.trim()}`,
    );
  }
  return { ...instance, image: outcome.image, files: {} };
}

/** Returns how many there were to forget. */
function forgetUploads(staged: Staged, { store }: Connection): number {
  const known = localFiles(staged).filter(({ sha256 }) => store.uploads.get(sha256) !== undefined);
  const hashes = new Set(known.map(({ sha256 }) => sha256));
  for (const sha256 of hashes) store.uploads.delete(sha256);
  return hashes.size;
}

function localFiles(staged: Staged): LocalFile[] {
  return [...staged.values()].flatMap((entry) =>
    entry.type === "file" && entry.content.kind === "local"
      ? [{ absolutePath: entry.content.absolutePath, sha256: entry.sha256, size: entry.size }]
      : [],
  );
}

function instanceFiles(staged: Staged, ids: ReadonlyMap<string, string>): Record<string, InstanceFile> {
  return Object.fromEntries(
    [...staged].flatMap(([path, entry]): [string, InstanceFile][] => {
      if (entry.type !== "file") return [];
      const uuid = ids.get(entry.sha256);
      if (uuid === undefined) throw new Error(`no file id for ${path}`);
      const { uid, gid } = entry;
      return [[path, { uuid, uid, gid, mode: entry.mode.toString(8).padStart(4, "0") }]];
    }),
  );
}
