import { linkSync, lstatSync, type Stats } from "node:fs";
import type { Pace } from "../../pace.ts";
import { errorCode } from "../../system-error.ts";
import { layerDirectory, layersWithLinks } from "../records/layers.ts";
import type { Records } from "../records/records.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";
import { createBatchSharing, type Problems } from "./batch-sharing.ts";

/** Makes hard links on several threads, this one included, in no particular order. */
export interface Linker extends AsyncDisposable {
  /**
   * Links `path`, which does not exist, to `existing`. Await its result before the next call.
   *
   * @param copy copies the file instead, if the file system refuses the link; called at the latest in `drain`
   */
  link(existing: Path, path: Path, copy: () => Promise<void> | undefined): Promise<void> | undefined;
  /** Resolves when all links are made. */
  drain(): Promise<void>;
}

/** The number of links that take as long as the start of a thread. */
const minLinksForThreads = 2_000;
/** The number of links in a batch, which occupies this thread for a millisecond or two. */
const batchLinks = 128;

export function createLinker(pace: Pace): Linker {
  const sharing = createBatchSharing<LinkJob, "refused">(pace, {
    program: "./engine/copies/link-thread.ts",
    perform: linkBatch,
    minJobs: minLinksForThreads,
  });
  let batch: LinkJob[] = [];
  let copies: (() => Promise<void> | undefined)[] = [];
  const refused: (() => Promise<void> | undefined)[] = [];

  async function flush(): Promise<void> {
    const [jobs, ofJobs] = [batch, copies];
    [batch, copies] = [[], []];
    await sharing.run(jobs, (problems) => {
      for (const [index] of problems) {
        const copy = ofJobs[index];
        if (copy !== undefined) refused.push(copy);
      }
    });
    await copyRefused();
  }

  async function copyRefused(): Promise<void> {
    for (const copy of refused.splice(0)) {
      await pace.step();
      await copy();
    }
  }

  return {
    link(existing, path, copy) {
      batch.push([existing, path]);
      copies.push(copy);
      return batch.length < batchLinks ? undefined : flush();
    },
    async drain() {
      if (batch.length > 0) await flush();
      await sharing.drain();
      await copyRefused();
    },
    [Symbol.asyncDispose]: () => sharing[Symbol.asyncDispose](),
  };
}

/** Decides which files of layers are hard-linked instead of copied. */
export interface LinkPolicy {
  /** Returns true if the image may hard-link this file of a layer; false if two of its files would become one, or if the file is gone. */
  allows(entry: { layer: number }, stats: () => Stats | undefined): boolean;
}

interface LinkOptions {
  /** False if a command will run in the upper directory: it could write to a layer's file. */
  isAllowed: boolean;
  /** Layers that the image is built on. */
  shared: ReadonlySet<number>;
  /** Inodes of files that the image shares with other layers. */
  taken: ReadonlySet<number>;
  /** True if only one source is copied. */
  isSingle: boolean;
}

/**
 * Decides when a file of a layer may be hard-linked into another image, so that nothing is copied. It may not if the image
 * already has the same file under another name, since BuildKit makes two files of them.
 */
export class LinkPolicies {
  readonly #options: LinkOptions;
  readonly #linked = new Map<number, LinkPolicy>();
  /** Layers for whose files a hard link was allowed. */
  readonly linkedLayers = new Set<number>();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Returns the policy for the files of one source. Hard links within a source are kept. */
  forSource(): LinkPolicy {
    const policy: LinkPolicy = {
      allows: ({ layer }, stats) => {
        const isAllowed = this.#allows(layer, stats, policy);
        if (isAllowed) this.linkedLayers.add(layer);
        return isAllowed;
      },
    };
    return policy;
  }

  #allows(layer: number, stats: () => Stats | undefined, policy: LinkPolicy): boolean {
    const { isAllowed, shared, taken, isSingle } = this.#options;
    if (!isAllowed || shared.has(layer)) return false;
    if (isSingle && taken.size === 0) return true;
    const ino = stats()?.ino;
    if (ino === undefined || taken.has(ino)) return false;
    const other = this.#linked.get(ino) ?? policy;
    this.#linked.set(ino, other);
    return other === policy;
  }
}

/** Returns the inodes of files in these layers that have more than one hard link. */
export async function linkedFiles(
  { database, layout }: Records,
  layers: readonly number[],
  pace: Pace,
): Promise<Set<number>> {
  const found = new Set<number>();
  const waiting: Path[] = layersWithLinks(database, layers).map((id) => layerDirectory(layout, id));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const { name, type } of listDirectory(next)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = joinPath(next, name);
      if (type === "directory") waiting.push(path);
      else {
        const { nlink, ino } = lstatSync(path);
        if (nlink > 1) found.add(ino);
      }
    }
  }
  return found;
}

/** A hard link to make: the file, and its new name. */
type LinkJob = readonly [existing: Path, path: Path];

/**
 * Makes a hard link. Returns false if the file system allows no more links to this file, or none at all, or if a copy must be tried
 * instead, which replaces an existing file, or reports that the original is gone.
 */
export function tryLink(existing: Path, path: Path): boolean {
  try {
    linkSync(existing, path);
    return true;
  } catch (error) {
    if (["EMLINK", "EPERM", "EXDEV", "ENOTSUP", "EEXIST", "ENOENT"].includes(errorCode(error) ?? ""))
      return false;
    throw error;
  }
}

export function linkBatch(jobs: readonly LinkJob[]): Problems<"refused"> {
  return jobs.flatMap(([existing, path], index) =>
    tryLink(existing, path) ? [] : [[index, "refused"] as const],
  );
}
