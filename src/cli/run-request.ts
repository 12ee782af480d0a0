import { placementScript } from "../build/placement.ts";
import type { Staged } from "../build/staged.ts";
import { BoughError } from "../errors.ts";
import type { LocalFile } from "../service/service.ts";
import type { InstanceFile, InstanceRequest } from "../service/types.ts";
import type { Invocation } from "./command.ts";
import type { Connection } from "./connection.ts";
import type { FileArgument } from "./file-argument.ts";
import { requireImage, requireSessionImage } from "./image-argument.ts";
import { requireExitCode, runInstance } from "./instance.ts";
import { stageLocalFiles } from "./local-files.ts";
import { readPipedInput } from "./piped-input.ts";

/** What `bough run` was asked for. */
export interface RunRequest {
  key: string;
  /** Instead of the session's image. */
  use: string | undefined;
  /** For the session's history. */
  title: string;
  process: Pick<InstanceRequest, "command" | "args" | "shell">;
  env: Record<string, string>;
  cwd: string;
  timeoutSeconds: number;
  files: readonly FileArgument[];
  excludes: readonly string[];
  isDisposable: boolean;
}

/** Bytes of each output stream that the service is asked to keep. */
const outputLimit = 16 * 1024 * 1024;

/** The image that the command begins with. */
export async function startImage(request: RunRequest, { service, store }: Connection): Promise<string> {
  return request.use === undefined
    ? requireSessionImage(store, request.key)
    : await requireImage(service, request.use);
}

/** Uploads the local files, reads what is piped in, and puts the request together. */
export async function prepareInstance(
  request: RunRequest,
  image: string,
  { runtime, log }: Invocation,
  { service }: Connection,
): Promise<InstanceRequest> {
  const staged = await stageLocalFiles(request.files, {
    workingDirectory: runtime.workingDirectory,
    cwd: request.cwd,
    excludes: request.excludes,
    signal: runtime.signal,
    warn: log.warn,
  });
  const stdin = await readPipedInput(runtime, log);
  const files = instanceFiles(staged, await service.uploadFiles(localFiles(staged)));
  const instance: InstanceRequest = {
    image,
    ...request.process,
    env: request.env,
    cwd: request.cwd,
    files,
    timeout: request.timeoutSeconds,
    disposable: request.isDisposable,
    truncate_output_at: outputLimit,
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
      command: "sh",
      args: ["-s"],
      shell: false,
      stdin: { value: Buffer.from(script).toString("base64"), encoding: "base64" },
      cwd: "/",
      files,
      timeout: request.timeoutSeconds,
      disposable: false,
    },
    { service, signal: runtime.signal, log },
  );
  if (requireExitCode(outcome, request.timeoutSeconds) !== 0 || outcome.image === undefined) {
    throw new BoughError(
      `the links and directories of --file could not be made: ${outcome.stderr.text.trim()}`,
    );
  }
  return { ...instance, image: outcome.image, files: {} };
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
