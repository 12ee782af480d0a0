/** Interfaces for finding, hashing and sending files of the context before the steps that need them. */
import type { HashOptions } from "../context/hashing/hash.ts";
import type { ContentListener, FileToHash } from "../context/hashing/hash-file.ts";
import type { ResolvedSources } from "../context/sources/sources.ts";
import type { AddInstruction, CopyInstruction } from "../dockerfile/instruction.ts";
import type { LocalFile, UploadProgress } from "../service/files/upload.ts";

/** Finds and hashes the sources of later COPYs while the service is busy with earlier instructions. */
export interface SourcePrefetch {
  /** Starts with the COPYs and ADDs from `index` on, up to the next FROM or RUN. */
  begin(index: number): void;
  /** Returns the instruction's sources; `undefined` if they were not prefetched. Rejects if finding them has failed. */
  take(instruction: CopyInstruction | AddInstruction): Promise<PrefetchedSources | undefined>;
  /** Resolves when nothing is being read any more. */
  stop(): Promise<void>;
}

export interface PrefetchedSources {
  /** `undefined` if they were found too long ago: files written to the context during a RUN must be copied, too. */
  sources: ResolvedSources | undefined;
  /**
   * Resolves once entries have their hashes. Resolves with `undefined` if the caller has to hash them (again), which is fast for
   * unchanged files.
   */
  hashes(onProgress: NonNullable<HashOptions["onProgress"]>): Promise<{ areSettled: boolean } | undefined>;
}

/**
 * Contents that are sent to the service before the RUN that needs them: while the RUN before it runs, or while the rest of the
 * context is hashed. They are sent only if it is certain that the layer has to be made.
 */
export interface EagerUploads {
  /** Keeps contents from hashing until they are sent; `undefined` if nothing is sent. */
  readonly contents: SmallContents | undefined;
  /** Offers a file that a COPY or ADD stages. */
  offer(file: Pick<LocalFile, "absolutePath" | "size">, sha256: string): void;
  /**
   * Hashes a large file while it is sent. Returns `undefined` if it is not certain that the file
   * is needed, or if another one is being sent. If the service turns out to have the content, the rest is not sent.
   */
  hashWhileSending(
    file: FileToHash,
    onBytes: (bytes: number) => void,
    decided: Promise<unknown>,
  ): Promise<string | undefined>;
  /** Declares that everything offered since the last `markUncertain` will be needed. */
  markNeeded(): void;
  /**
   * Declares that contents which the service is not known to have will be needed: no layer of this machine can have them. A large
   * file is not sent before its hash is known.
   */
  markNew(): void;
  /** Declares that it is uncertain whether the next offers are needed. Drops earlier offers that have not been sent. */
  markUncertain(): void;
  /** Returns true if the content has been sent or is being sent, and no step has taken it over yet. */
  has(sha256: string): boolean;
  /**
   * Takes over the contents of a step, which sends the `rest` itself: waits for those being sent and returns the totals. Never
   * rejects: a content that could not be sent is not counted, and the step that sends it again gets the error.
   */
  finish(
    contents: { begun: Iterable<string>; rest: { has(sha256: string): boolean } },
    onProgress: (done: UploadProgress) => void,
  ): Promise<UploadProgress>;
  /** Resolves when nothing is being sent any more. */
  stop(): Promise<void>;
}

/**
 * Keeps the contents of small files from hashing until they are sent: opening, reading and hashing a file again takes about as
 * long as sending it.
 */
export interface SmallContents {
  /** Copies the bytes. Drops the oldest contents if there is no room. */
  keep: ContentListener;
  /** Returns and drops a content. Returns `undefined`, too, if the file has changed since: code that then reads it reports that. */
  take(sha256: string): Uint8Array | undefined;
}
