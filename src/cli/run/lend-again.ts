import { statSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { watchForChanges } from "../../service/files/local-file.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { LentFile, Loan } from "../../service/wire/file.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Invocation } from "../command-line/command.ts";
import { commandLine } from "../command-line/documentation.ts";
import type { Connection } from "../service/connection.ts";
import type { FailedStep } from "./failed-step.ts";

const shownFiles = 5;

/** A failed step's files of this machine, lent again: the fields of a request that name them. */
export interface LentAgain extends Pick<InstanceRequest, "lent_files" | "mounts"> {
  end(): void;
}

/** Lends the files of a failed step to a service in this process again. The loans of the step's own request have ended. */
export async function lendAgain(
  step: FailedStep,
  { service }: Pick<Connection, "service">,
  { runtime, globals, log }: Pick<Invocation, "runtime" | "globals" | "log">,
): Promise<LentAgain> {
  const { lendFiles: lend } = service;
  const { mounts = [] } = step.fields;
  const loans: Loan[] = [];
  const end = () => {
    for (const loan of loans) loan.end();
  };
  if (lend === undefined) return { mounts, end };
  const own =
    step.lent.length > 0 ? lend(await findLentFiles(step, service, { runtime, globals })) : undefined;
  if (own !== undefined) loans.push(own);
  const mounted: typeof mounts = [];
  for (const mount of mounts) {
    if (!("lent_files" in mount)) {
      mounted.push(mount);
      continue;
    }
    const files = step.lentToMounts?.[mount.lent_files] ?? [];
    const loan = lend(await findMountedFiles(files, runtime.signal, log.warn));
    loans.push(loan);
    mounted.push({ ...mount, lent_files: loan.id });
  }
  return { ...(own && { lent_files: own.id }), mounts: mounted, end };
}

/**
 * Returns the files that were lent to a failed step, with the contents they had then. A file of the context that has changed
 * since is taken from the step's result image, unless the command changed it there.
 */
async function findLentFiles(
  { lent, fields: { image }, result }: FailedStep,
  service: Pick<ImageService, "openFile" | "uploadStream">,
  { runtime, globals }: Pick<Invocation, "runtime" | "globals">,
): Promise<readonly LentFile[]> {
  const found: LentFile[] = [];
  const lost: string[] = [];
  for (const file of lent) {
    runtime.signal.throwIfAborted();
    if ("uuid" in file || (await isUnchanged(file))) {
      found.push(file);
      continue;
    }
    const { path, ...placed } = file;
    const uuid = result === undefined ? undefined : await takeFromImage(file, result, service);
    if (uuid === undefined) lost.push(path);
    else found.push({ ...placed, uuid });
  }
  if (lost.length === 0) return found;
  throw new BoughError(
    `changed since the step failed, and the old contents are not available: ${list(lost)}`,
    {
      hint: [
        "Build again to open the step with the current files. To open the image before it, without the copied files:",
        `  ${commandLine(globals, ["shell", image])}`,
      ].join("\n"),
    },
  );
}

/**
 * Returns the files of a failed step's mount as they are now, since no image has their old contents. Calls `warn` if some have
 * changed since, or are gone.
 */
async function findMountedFiles(
  lent: readonly LentFile[],
  signal: AbortSignal,
  warn: (message: string) => void,
): Promise<readonly LentFile[]> {
  const found: LentFile[] = [];
  const changed: string[] = [];
  for (const file of lent) {
    signal.throwIfAborted();
    const now = "uuid" in file ? file : await describeNow(file);
    if (now !== undefined) found.push(now);
    if (now?.sha256 !== file.sha256 && "path" in file) changed.push(file.path);
  }
  if (changed.length > 0)
    warn(`changed since the step failed, and mounted as they are now: ${list(changed)}`);
  return found;
}

/** Returns `undefined` for a file that is gone or can't be read. */
async function describeNow<File extends LentFile & { path: string }>(file: File): Promise<File | undefined> {
  try {
    const stats = statSync(file.path);
    if (!stats.isFile()) return undefined;
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const chunk of Bun.file(file.path).stream()) hasher.update(chunk);
    const sha256 = hasher.digest("hex");
    return sha256 === file.sha256 ? file : { ...file, sha256, size: stats.size, mtime: stats.mtimeMs / 1000 };
  } catch {
    return undefined;
  }
}

/** Lists the first few paths. */
function list(paths: readonly string[]): string {
  const others = paths.length - shownFiles;
  return [...paths.slice(0, shownFiles), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}

async function isUnchanged({
  path,
  sha256,
  size,
}: Pick<LentFile, "sha256" | "size"> & { path: string }): Promise<boolean> {
  try {
    if (!statSync(path).isFile()) return false;
    await watchForChanges({ absolutePath: path, sha256, size }).checkContent();
    return true;
  } catch {
    return false;
  }
}

/**
 * Uploads a file of the image and returns its id; `undefined` if the image is gone, or its file at that path has other contents.
 */
async function takeFromImage(
  { destination, sha256 }: LentFile,
  image: string,
  service: Pick<ImageService, "openFile" | "uploadStream">,
): Promise<string | undefined> {
  try {
    const content = await service.openFile(image, destination);
    if (content === undefined) return undefined;
    const inspect = (sent: string) => {
      if (sent !== sha256) throw new OtherContentError("it is another file");
    };
    return (await service.uploadStream(content, { inspect })).uuid;
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof OtherContentError) return undefined;
    throw error;
  }
}

class OtherContentError extends BoughError {}
