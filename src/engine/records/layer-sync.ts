import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import { inTransaction } from "../../database.ts";
import { messageOf, withHint } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import type { Layout } from "../layout.ts";
import { FailedSyncError, syncToDisk } from "../system/disk.ts";
import { unfinishedOperations } from "./operations.ts";
import { type FailedSync, recordFailedSync, recordSynced, unsyncedLayers } from "./unsynced-layers.ts";

/** The time for which a layer may be only in memory. */
const delayMilliseconds = 1_000;

interface LayerSyncHost {
  database: Database;
  layout: Layout;
  clock: Clock;
  environment: Environment;
  /** See `recordUnsynced`. */
  boot: string;
  warn: (message: string) => void;
}

/**
 * Syncs layers to the disk while the next commands run, so that no command waits for it. Twenty small layers take about as long
 * as one.
 */
export class LayerSync {
  readonly #host: LayerSyncHost;
  readonly #closing = new AbortController();
  /** Ends a sync in the background. */
  readonly #abandoning = new AbortController();
  #pending: Promise<void> | undefined;
  /** The syncs of layers that are under way. */
  #running: Promise<unknown> | undefined;
  #background: Promise<void> | undefined;
  /** Failed syncs that could not be recorded yet. */
  #unrecorded: FailedSync[] = [];
  /** The reason, already reported, for which the latest sync was not possible. */
  #delayedBy: string | undefined;

  constructor(host: LayerSyncHost) {
    this.#host = host;
  }

  /** Call it when a layer is recorded. */
  request(): void {
    this.#pending ??= this.#syncSoon();
  }

  /** Starts to write what was copied by now, so that the next sync has less to write. No command waits for it. */
  startInBackground(): void {
    const { signal } = this.#abandoning;
    this.#background ??= this.#write([], signal)
      .catch((error: unknown) => {
        // Without a program to sync with, the next sync reports that.
        if (error instanceof FailedSyncError) this.#report(error);
      })
      .finally(() => {
        this.#background = undefined;
      });
  }

  /** Waits until everything that was written is on the disk, unless a sync has failed meanwhile (`requireNoFailedSync`). */
  syncNow(signal: AbortSignal): Promise<void> {
    return this.#write([], signal);
  }

  /**
   * Syncs all layers that are recorded by now. An error becomes a warning, and its layers are lost. Returns false if even that
   * can't be recorded.
   */
  async settle(): Promise<boolean> {
    await this.#sync();
    return this.#unrecorded.length === 0;
  }

  /** Syncs as `settle` does, for the last time, and waits for everything that it has started. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pending;
    await this.#sync();
    await this.#endBackground();
  }

  async #endBackground(): Promise<void> {
    if (this.#background === undefined) return;
    // If no layer was made, the copied files are not needed. But an error of their sync may concern operations of other processes.
    if (unfinishedOperations(this.#host.database).length === 0)
      this.#abandoning.abort(new Error("the engine is closing"));
    await this.#background;
  }

  async #syncSoon(): Promise<void> {
    const { signal } = this.#closing;
    const isOver = await this.#host.clock.sleep(delayMilliseconds, signal).then(
      () => false,
      () => true,
    );
    // A layer recorded during the sync may miss it, and needs another one.
    this.#pending = undefined;
    if (!isOver) await this.#sync();
  }

  /** Waits for earlier syncs, too: their errors may concern the same layers. */
  #sync(): Promise<void> {
    const running = Promise.all([this.#running, this.#syncUnsynced()]).then(() => undefined);
    this.#running = running;
    return running;
  }

  async #syncUnsynced(): Promise<void> {
    const { database, boot } = this.#host;
    try {
      this.recordFailures();
      const layers = unsyncedLayers(database, boot);
      if (layers.length === 0) return;
      await Promise.all([this.#background, this.#write(layers, new AbortController().signal)]);
      // The sync in the background may have got the error of a layer.
      this.recordFailures();
      inTransaction(database, () => recordSynced(database, layers, boot));
      this.#delayedBy = undefined;
    } catch (error) {
      this.#report(error);
    }
  }

  /** Syncs, and records a failure, which loses the unsynced `layers` at least. */
  async #write(layers: readonly number[], signal: AbortSignal): Promise<void> {
    const { clock, layout } = this.#host;
    const startedAt = clock.now();
    try {
      await syncToDisk(this.#host, layout.layers, signal);
    } catch (error) {
      if (error instanceof FailedSyncError) {
        this.#unrecorded.push({ layers, startedAt });
        try {
          this.recordFailures();
        } catch {
          // Until this is recorded, no layer counts as synced, and no request is answered.
        }
      }
      throw error;
    }
  }

  /** Records failed syncs that are not recorded yet. Throws if that is not possible, for example on a full disk. */
  recordFailures(): void {
    for (const failure of this.#unrecorded) recordFailedSync(this.#host.database, failure);
    this.#unrecorded = [];
  }

  #report(error: unknown): void {
    const message = messageOf(error);
    if (error instanceof FailedSyncError) {
      this.#host.warn(
        `layers and caches that were not on the disk yet count as lost, and images built on them must be built again: ${withHint(error)}`,
      );
      return;
    }
    // `close` tries once more.
    if (message !== this.#delayedBy)
      this.#host.warn(`the newest layers may not be written to the disk yet: ${message}`);
    this.#delayedBy = message;
  }
}

/** Syncing less in the background costs more time than it saves later. */
const minFiles = 1_000;
const minBytes = 32 * 1024 * 1024;

/** Writes files that are copied into an upper directory to the disk before their layer is recorded. */
export class BackgroundSync {
  readonly #sync: Pick<LayerSync, "startInBackground">;
  #files = 0;
  #bytes = 0;
  /** Bytes of large files since the last start. */
  #unsynced = 0;

  constructor(sync: Pick<LayerSync, "startInBackground">) {
    this.#sync = sync;
  }

  /** Call it for each part of a large file: the disk writes it while the rest is copied. */
  addPart(bytes: number): void {
    this.#bytes += bytes;
    this.#unsynced += bytes;
    if (this.#unsynced < minBytes) return;
    this.#unsynced = 0;
    this.#sync.startInBackground();
  }

  /** Call it for files that are complete. A sync between small files would hinder those that follow. */
  addFiles(count: number, bytes: number): void {
    this.#files += count;
    this.#bytes += bytes;
  }

  /** Call it after the last file: the disk writes while the command runs. */
  end(): void {
    if (this.#files >= minFiles || this.#bytes >= minBytes) this.#sync.startInBackground();
  }
}
