/** Runs a prepared build, and writes its image to its outputs. */
import type { BuildResult } from "../../builder/result.ts";
import { BoughError } from "../../errors.ts";
import type { imagesOf } from "./prepared-build.ts";

interface RunAndDeliver {
  run(): Promise<BuildResult>;
  deliver(result: BuildResult): Promise<BuildResult["exported"]>;
  /** The images of the result, with the services that have them. */
  imagesOf(result: BuildResult): ReturnType<typeof imagesOf>;
  /** False if nothing can be written again: the outputs go to standard output. */
  mayRepeat: boolean;
}

/**
 * Runs a build and writes its outputs. If that shows that a cache has lost or forged a layer of a result that was found there, builds it
 * again, once: its steps are run then.
 */
export async function runAndDeliver({ run, deliver, imagesOf, mayRepeat }: RunAndDeliver) {
  const found = await run();
  try {
    return { result: found, exported: await deliver(found) };
  } catch (error) {
    const mayBeLoss = error instanceof BoughError && error.kind === "failed";
    if (!mayRepeat || !mayBeLoss || !(await isAnyLost(imagesOf(found)))) throw error;
  }
  const result = await run();
  return { result, exported: await deliver(result) };
}

async function isAnyLost(images: ReturnType<typeof imagesOf>): Promise<boolean> {
  for (const { uuid, service } of images)
    if ((await service.connection.service.hasImage(uuid)) === false) return true;
  return false;
}
