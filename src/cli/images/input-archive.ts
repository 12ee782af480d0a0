/** Stores an archive from standard input in a file, since an import reads parts of it in any order. */
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { usageError } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch, withScratchHint } from "../process/scratch.ts";

/** True for `docker-archive:-` and `oci-archive:-`, with or without the name of an image in it. */
export function isStandardInputArchive(reference: string): boolean {
  return standardInputArchive.test(reference);
}

const standardInputArchive = /^((?:oci|docker)-archive:)-(?=$|:)/;

/** Writes standard input to a file, which is removed when `stack` is disposed of. Returns the reference with its path. */
export async function readInputArchive(
  reference: string,
  { stdin, inputs, environment, signal }: Runtime,
  stack: DisposableStack,
): Promise<string> {
  if (!stdin.isPiped)
    throw usageError(
      `${reference} is read from standard input, and nothing is piped in`,
      "Pipe in what docker save writes: docker save app | bough images import docker-archive:-",
    );
  const scratch = stack.use(openScratch("import", environment));
  const content = inputs.takeStandardInput("an archive of images");
  try {
    await pipeline(Readable.from(content), createWriteStream(scratch.path, { mode: 0o600 }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw withScratchHint(error, scratch);
  }
  return reference.replace(standardInputArchive, `$1${scratch.path}`);
}
