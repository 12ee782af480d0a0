import { closeSync, constants, lstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { steadyTime } from "../../clock.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { hexOf } from "../../image/digest.ts";
import { type BlobSource, MissingBlobError, WrongBlobError } from "../../registry/blob-store.ts";
import { createSemaphore } from "../../semaphore.ts";
import { meansUnwritable } from "../faults.ts";
import { createBudget, NoRoomError } from "../import-limits.ts";
import type { AbsentBlob } from "../records/absent-layers.ts";
import { linkKnownBlobs } from "../records/imported-blobs.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { downloadDirectory } from "./download.ts";
import { startGuardedFetch } from "./fetch-guard.ts";
import type { LayerFile } from "./image-parts.ts";

/** Thrown if a blob could not be fetched. */
export class UnfetchedBlobError extends BoughError {
  override readonly name = "UnfetchedBlobError";
  readonly blob: AbsentBlob;
  /** False if the whole source may have failed. */
  readonly concernsBlob: boolean;

  constructor(blob: AbsentBlob, cause: unknown, concernsBlob: boolean) {
    super(messageOf(cause), { cause });
    this.blob = blob;
    this.concernsBlob = concernsBlob;
  }
}

/** The maximum number of blobs that are fetched at the same time. */
const maxConcurrent = 4;
const reportMilliseconds = 1000;

interface FetchOptions {
  signal: AbortSignal;
  report: (message: string) => void;
  /** Called with the digest and the path of each blob while others are fetched. */
  onBlob: (digest: string, path: string) => void;
}

/** Fetches blobs of absent layers into an operation's directory. */
export class BlobFetch {
  readonly #state: EngineState;
  readonly #directory: string;
  #received = 0;

  constructor(state: EngineState, run: OperationRun) {
    this.#state = state;
    this.#directory = join(run.directory, downloadDirectory);
  }

  /** Returns the files of the blobs. Those that the engine has are not fetched. Rejects with an UnfetchedBlobError. */
  async fetch(blobs: readonly AbsentBlob[], options: FetchOptions): Promise<LayerFile[]> {
    // An earlier attempt may have got some of them.
    mkdirSync(this.#directory, { mode: 0o700, recursive: true });
    linkKnownBlobs(this.#state, this.#directory);
    const wanted = [...new Map(blobs.map((blob) => [blob.digest, blob])).values()].filter(
      ({ digest, size }) => lstatSync(this.#pathOf(digest), { throwIfNoEntry: false })?.size !== size,
    );
    const { layout, importLimits } = this.#state;
    const bytes = wanted.reduce((sum, { size }) => sum + size, 0);
    createBudget("the image", layout.directory, importLimits).check({ written: bytes });
    await this.#fetchAll(wanted, { ...options, report: this.#createReport(bytes, options) });
    return blobs.map(({ digest, size, source }) => {
      const name = `layer ${digest} of ${source}`;
      const place = {
        path: this.#pathOf(digest),
        offset: 0,
        length: size,
        name,
        flags: constants.O_NOFOLLOW,
      };
      return { digest, source, file: { name, size, place, isOwn: true } };
    });
  }

  /** Removes a blob, so that another attempt fetches it again. */
  discard({ digest }: Pick<AbsentBlob, "digest">): void {
    rmSync(this.#pathOf(digest), { force: true });
  }

  /** Removes the fetched files. Hard links to them stay. */
  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  #pathOf(digest: string): string {
    return join(this.#directory, hexOf(digest));
  }

  async #fetchAll(
    wanted: readonly AbsentBlob[],
    options: FetchOptions & { report: () => void },
  ): Promise<void> {
    const failed = new AbortController();
    const signal = AbortSignal.any([options.signal, failed.signal]);
    const sources = new Map<string, Promise<OpenedSource>>();
    const slots = createSemaphore(maxConcurrent);
    const fetchNext = async (blob: AbsentBlob) => {
      const release = await slots.acquire();
      try {
        signal.throwIfAborted();
        const source = sources.get(blob.source) ?? openGuardedSource(this.#state, blob.source);
        sources.set(blob.source, source);
        await this.#fetchOne(source, blob, { ...options, signal });
      } catch (error) {
        // Later failures are caused by the abort itself.
        if (!signal.aborted) failed.abort(error);
      } finally {
        release();
      }
    };
    try {
      await Promise.all(wanted.map(fetchNext));
      signal.throwIfAborted();
    } finally {
      for (const source of sources.values()) (await source.catch(() => undefined))?.[Symbol.dispose]();
    }
  }

  async #fetchOne(
    opening: Promise<OpenedSource>,
    blob: AbsentBlob,
    { signal, report, onBlob }: FetchOptions & { report: () => void },
  ): Promise<void> {
    const { layout } = this.#state;
    const unfinished = `${this.#pathOf(blob.digest)}.unfinished`;
    try {
      const { store } = await opening;
      for (let isDone = false; !isDone; )
        isDone = await this.#receive(store, blob, unfinished, { signal, report });
    } catch (error) {
      if (signal.aborted || meansUnwritable(error, layout) || error instanceof NoRoomError) throw error;
      const reason = (await opening.catch(() => undefined))?.reasonOf(messageOf(error));
      const concernsBlob = error instanceof MissingBlobError || error instanceof WrongBlobError;
      throw new UnfetchedBlobError(blob, reason ?? error, concernsBlob);
    }
    const path = this.#pathOf(blob.digest);
    renameSync(unfinished, path);
    onBlob(blob.digest, path);
  }

  /** Writes a blob to a file. Returns false if a mirror had another one under its digest: another source may have the right one. */
  async #receive(
    store: OpenedSource["store"],
    blob: AbsentBlob,
    path: string,
    { signal, report }: { signal: AbortSignal; report: () => void },
  ): Promise<boolean> {
    // The thread that unpacks it compares the digest.
    const chunks = await store.openBlob(blob, signal, "size");
    const before = this.#received;
    rmSync(path, { force: true });
    const file = openSync(path, "wx", 0o600);
    try {
      for await (const chunk of chunks) {
        signal.throwIfAborted();
        for (let done = 0; done < chunk.byteLength; ) done += writeSync(file, chunk, done);
        this.#received += chunk.byteLength;
        report();
      }
      return true;
    } catch (error) {
      if (!(error instanceof WrongBlobError) || !error.isOfMirror) throw error;
      this.#received = before;
      return false;
    } finally {
      closeSync(file);
    }
  }

  /** Creates a function that reports from time to time how much was downloaded. */
  #createReport(bytes: number, { report }: FetchOptions): () => void {
    const { clock } = this.#state;
    const total = (bytes / 1_000_000).toFixed(1);
    let reportedAt = steadyTime(clock);
    return () => {
      if (steadyTime(clock) - reportedAt < reportMilliseconds) return;
      reportedAt = steadyTime(clock);
      report(`Downloaded ${(this.#received / 1_000_000).toFixed(1)} of ${total} MB`);
    };
  }
}

/** A store of blobs that the engine reads from. */
export interface OpenedSource extends Disposable {
  store: BlobSource;
  /** Returns the reason for a failure, if it is known better than from its message. */
  reasonOf(message: string): BoughError | undefined;
}

/** Opens the source of absent layers. For a client of a server it refuses local addresses, as an import does. */
export async function openGuardedSource(state: EngineState, address: string): Promise<OpenedSource> {
  const { clock, environment, openBlobSource, allowsLocalFetch } = state;
  if (allowsLocalFetch) {
    const store = await openBlobSource(address, { fetch, clock, environment });
    return { store, reasonOf: () => undefined, [Symbol.dispose]() {} };
  }
  const guard = await startGuardedFetch(environment);
  try {
    const store = await openBlobSource(address, { fetch: guard.fetch, clock, environment });
    return { store, reasonOf: guard.reasonOf, [Symbol.dispose]: guard.close };
  } catch (error) {
    guard.close();
    throw error;
  }
}
