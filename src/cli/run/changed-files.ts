import { statSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { watchForChanges } from "../../service/files/local-file.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { LentFile } from "../../service/wire/file.ts";
import type { Invocation } from "../command-line/command.ts";
import { commandLine } from "../command-line/documentation.ts";
import type { FailedStep } from "./failed-step.ts";

const shownFiles = 5;

/**
 * Returns the files that were lent to a failed step, with the contents they had then. A file of the context that has changed
 * since is taken from the step's result image, unless the command changed it there.
 */
export async function findLentFiles(
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
  const others = lost.length - shownFiles;
  const names = [...lost.slice(0, shownFiles), ...(others > 0 ? [`${others} more`] : [])].join(", ");
  throw new BoughError(`changed since the step failed, and the old contents are not available: ${names}`, {
    hint: [
      "Build again to open the step with the current files. To open the image before it, without the copied files:",
      `  ${commandLine(globals, ["shell", image])}`,
    ].join("\n"),
  });
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
