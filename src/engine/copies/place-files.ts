import { edenGC } from "bun:jsc";
import { lstatSync, rmSync } from "node:fs";
import { basename, dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { DamagedFilesError } from "../records/files.ts";
import type { BackgroundSync } from "../records/layer-sync.ts";
import type { Path } from "../system/path.ts";
import { createBatchSharing } from "./batch-sharing.ts";
import type { PlacedFile } from "./file-spec.ts";
import { createLinker, tryLink } from "./linker.ts";
import {
  createDirectoryMaker,
  setExtendedAttributes,
  type UpperDirectory,
  type UpperTree,
} from "./upper-tree.ts";
import {
  type CopyJob,
  type CopyProblem,
  createBatchCopier,
  createLargeCopier,
  smallBytes,
} from "./verified-copy.ts";

/**
 * Copies files to their destinations, taking one at a time from `files`. Links in the path are followed inside the root. As COPY does, it
 * replaces an existing file at the destination, even a link; a directory is replaced only by a file with `replaces`. A copy shares no inode
 * with its original. A file that `reuse` finds in an earlier layer becomes a hard link to that. Further names of a file become hard links
 * to its copy. Throws at the first file without a `uuid` (one that is not stored) that has changed since it was hashed.
 *
 * @throws DamagedFilesError naming all stored files whose bytes do not match their SHA-256
 */
export async function placeFiles(
  to: UpperTree,
  files: Iterable<PlacedFile>,
  pace: Pace,
  { backgroundSync, reuse }: { backgroundSync?: BackgroundSync; reuse?: FileReuse | undefined } = {},
): Promise<void> {
  let directoryAt = createDirectoryMaker(to);
  const damaged: PlacedFile[] = [];
  const report = (file: PlacedFile, problem: CopyProblem) => {
    if (problem === "directory") throw directoryInPlace(file.destination);
    if (!("uuid" in file)) throw new ChangedFileError(file.path, `cannot put a file at ${file.destination}`);
    damaged.push(file);
  };
  await using copier = createFileCopier(pace, report, backgroundSync);
  await using linker = createLinker(pace);
  const drain = async () => {
    await linker.drain();
    await copier.drain();
  };
  /** The path by which each directory was reached last. */
  const lastPaths = new Map<UpperDirectory, string>();
  let parent = "";
  let directory = to.root;
  /** Makes the directory of a path. Returns true if it had another path before, through a link. */
  const enter = (destination: string): boolean => {
    if (dirname(destination) === parent) return false;
    parent = dirname(destination);
    directory = directoryAt(
      parent,
      (inside) =>
        new BoughError(`cannot put a file at ${destination}: ${inside} in the image is not a directory`),
    );
    to.materialize(directory);
    const before = lastPaths.get(directory) ?? parent;
    lastPaths.set(directory, parent);
    if (before !== parent) reuse?.invalidate();
    return before !== parent;
  };
  const pathOf = (destination: string, { replaces }: PlacedFile): string => {
    const name = basename(destination);
    const mayBeDirectory = replaces === true || directory.lower.length > 0;
    if (mayBeDirectory && to.find(directory, name)?.stats.isDirectory()) {
      if (replaces !== true) throw directoryInPlace(destination);
      to.clear(directory, name);
      directoryAt = createDirectoryMaker(to);
    }
    // A destination is text, and so is its directory's path.
    return `${directory.path}/${name}`;
  };
  const linked: { file: PlacedFile; path: string }[] = [];
  const attributed: typeof linked = [];
  let count = 0;
  for (const file of files) {
    const { destination, links = [], attributes } = file;
    // If two files have the same destination, the later one must stay.
    if (enter(destination)) await drain();
    const path = pathOf(destination, file);
    const existing = reuse?.find(`${directory.inside}/${basename(destination)}`, file);
    if (attributes !== undefined) attributed.push({ file, path });
    if (links.length > 0) linked.push({ file, path });
    const placing =
      existing === undefined
        ? copier.copy(file, path)
        : linker.link(existing, path, () => copier.copy(file, path));
    if (placing !== undefined) await placing;
    count++;
    if (count % filesPerCollection === 0) edenGC();
  }
  await drain();
  if (damaged.length > 0) throw new DamagedFilesError(damaged);
  for (const { file, path } of attributed) setExtendedAttributes(path, file);
  for (const { file, path } of linked) {
    for (const destination of file.links ?? []) {
      await pace.step();
      enter(destination);
      const place = pathOf(destination, file);
      if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true)
        throw directoryInPlace(destination);
      rmSync(place, { force: true });
      // A file system limits the number of links.
      if (!tryLink(path, place)) await copier.copy(file, place);
    }
  }
  await copier.drain();
}

/** Finds files of an earlier layer, and records those of this one. */
export interface FileReuse {
  /** Returns the path of a file that may be hard-linked in place of a copy; `undefined` if the file has to be copied. */
  find(inside: string, file: PlacedFile): Path | undefined;
  /** Call it when a file may replace an earlier one: the digests of this layer are then not valid. */
  invalidate(): void;
}

/** The number of files between two garbage collections. Each file leaves some hundred bytes, which would pile up otherwise. */
const filesPerCollection = 10_000;

function directoryInPlace(destination: string): BoughError {
  return new BoughError(`cannot put a file at ${destination}: there is a directory in the image`);
}

/** Thrown for a file of this machine that has changed since it was hashed. */
export class ChangedFileError extends BoughError {
  override readonly name = "ChangedFileError";

  readonly path: string;

  /** @param purpose what failed, such as `cannot mount at /src` */
  constructor(path: string, purpose: string) {
    super(`${purpose}: ${path} changed while it was being read`, {
      hint: "Build again when nothing writes to it any more.",
    });
    this.path = path;
  }
}

interface FileCopier extends AsyncDisposable {
  /** Copies a file. Await its result before the next call. Rejects or throws, also with the error of an earlier file. */
  copy(file: PlacedFile, target: string): Promise<void> | undefined;
  /** Resolves when all files are copied. */
  drain(): Promise<void>;
}

/** The number of files that are copied before a thread would have started. */
const minFilesForThreads = 400;
/** The maximum size of a batch, which occupies this thread for a few milliseconds. */
const maxBatchFiles = 128;
const maxBatchBytes = 1024 * 1024;
/** From this size on, a batch ends with its directory: threads that create files in the same one wait for each other. */
const minBatchFiles = 32;

/**
 * Creates a copier for files whose targets usually do not exist yet. It copies small files on several threads, this one included,
 * in no particular order. Calls `report` for each file that could not be copied.
 */
function createFileCopier(
  pace: Pace,
  report: (file: PlacedFile, problem: CopyProblem) => void,
  backgroundSync?: BackgroundSync,
): FileCopier {
  const sharing = createBatchSharing<CopyJob, CopyProblem>(pace, {
    program: "./engine/copies/copy-thread.ts",
    perform: createBatchCopier(),
    minJobs: minFilesForThreads,
  });
  const copyLarge = createLargeCopier((bytes) => backgroundSync?.addPart(bytes));
  let batch: CopyJob[] = [];
  let bytes = 0;
  let parent = "";

  function flush(): Promise<void> | undefined {
    const jobs = batch;
    backgroundSync?.addFiles(jobs.length, bytes);
    batch = [];
    bytes = 0;
    return sharing.run(jobs, (problems) => {
      for (const [index, problem] of problems) {
        const file = jobs[index]?.file;
        if (file !== undefined) report(file, problem);
      }
    });
  }

  async function copyAlone(file: PlacedFile, target: string): Promise<void> {
    await pace.step();
    const problem = await copyLarge(file, target);
    if (problem !== undefined) report(file, problem);
  }

  return {
    copy(file, target) {
      if (file.size >= smallBytes) return copyAlone(file, target);
      const before = parent;
      parent = dirname(target);
      const isFull = batch.length >= maxBatchFiles || bytes >= maxBatchBytes;
      const isEnd = isFull || (batch.length >= minBatchFiles && parent !== before);
      const flushing = isEnd ? flush() : undefined;
      batch.push({ file, target });
      bytes += file.size;
      return flushing;
    },
    async drain() {
      if (batch.length > 0) await flush();
      await sharing.drain();
    },
    [Symbol.asyncDispose]: () => sharing[Symbol.asyncDispose](),
  };
}
