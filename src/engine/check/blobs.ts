/** Checks what imported layers were unpacked from. */
import { existsSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import { hexOf } from "../../image/digest.ts";
import { type Pace, takeSteps } from "../../pace.ts";
import type { Layout } from "../layout.ts";
import { blobsDirectory, findBlobs } from "../records/imported-blobs.ts";
import { layerDirectory } from "../records/layers.ts";
import { hashInPieces, isUnreadable } from "../records/stored-content.ts";
import { DamagedSplitError, splitBlocks } from "../records/tar-split.ts";

interface BlobCheck {
  layout: Layout;
  pace: Pace;
  /** The bytes that have been read are added to it. */
  report: { bytes: number };
}

interface BlobProblem {
  problem: string;
  /** True if the files of the layer's directory may have changed, and not what is kept beside them. */
  mayBeInFiles: boolean;
}

/** Finds out whether what an imported layer was unpacked from is whole, or can be made again. */
export async function findBlobProblem(run: BlobCheck, id: number): Promise<BlobProblem | undefined> {
  const { layout } = run;
  if (!existsSync(blobsDirectory(layout, id))) return undefined;
  const blobs = findBlobs(layout, id);
  if (blobs === undefined) return { problem: "it is incomplete", mayBeInFiles: false };
  for (const { path, digest, splitBytes } of blobs) {
    const found =
      splitBytes === undefined
        ? await findByteProblem(run, path, hexOf(digest))
        : await findSplitProblem(run, path, layerDirectory(layout, id), digest);
    if (found !== undefined)
      return typeof found === "string" ? { problem: found, mayBeInFiles: false } : found;
  }
  return undefined;
}

async function findSplitProblem(
  { report, pace }: BlobCheck,
  path: string,
  directory: string,
  digest: string,
): Promise<BlobProblem | undefined> {
  const hasher = new Bun.CryptoHasher("sha256");
  const unreadable = await takeSteps(readSplit(path, directory), pace, (block) => {
    hasher.update(block);
    report.bytes += block.byteLength;
  });
  if (unreadable !== undefined) return unreadable;
  if (`sha256:${hasher.digest("hex")}` === digest) return undefined;
  return { problem: "its bytes have changed", mayBeInFiles: true };
}

/** Yields the bytes of an archive that is kept as a split. Returns why they can't be read, if so. */
function* readSplit(path: string, directory: string): Generator<Uint8Array, BlobProblem | undefined> {
  try {
    yield* splitBlocks(path, directory);
    return undefined;
  } catch (error) {
    if (!(error instanceof BoughError || isUnreadable(error))) throw error;
    // Both say which file it is.
    // A prune may have removed the split meanwhile.
    const mayBeInFiles = !(error instanceof DamagedSplitError) && existsSync(path);
    return { problem: messageOf(error), mayBeInFiles };
  }
}

export async function findByteProblem(
  { pace, report }: BlobCheck,
  path: string,
  sha256: string,
): Promise<string | undefined> {
  const actual = await takeSteps(hashInPieces(path), pace, (bytes) => {
    report.bytes += bytes;
  });
  if (actual === undefined) return "it cannot be read";
  return actual === sha256 ? undefined : "its bytes have changed";
}
