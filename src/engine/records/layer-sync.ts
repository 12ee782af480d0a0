import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import { inTransaction } from "../../database.ts";
import { BoughError, messageOf } from "../../errors.ts";
import type { Layout } from "../layout.ts";
import { FailedSyncError, syncToDisk } from "../system/disk.ts";
import type { Environment } from "../system/programs.ts";
import { unfinishedOperations } from "./operations.ts";
import {
  type FailedSync,
  hasMissedError,
  noteFailedSync,
  noteSynced,
  unsyncedLayers,
} from "./unsynced-layers.ts";

/** Milliseconds for which a layer may be only in memory. */
const delay = 1_000;

interface LayerSyncHost {
  database: Database;
  layout: Layout;
  clock: Clock;
  environment: Environment;
  /** See `noteUnsynced`. */
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
  /** Ends an early sync. */
  readonly #leaving = new AbortController();
  #pending: Promise<void> | undefined;
  #early: Promise<void> | undefined;
  /** Failed syncs that could not be recorded, for example on a full disk. */
  #unrecorded: FailedSync[] = [];

  constructor(host: LayerSyncHost) {
    this.#host = host;
  }

  /** Call it when a layer is recorded. */
  request(): void {
    this.#pending ??= this.#syncSoon();
  }

  /** Starts to write what was copied by now, so that the next sync has less to write. Nobody waits for it. */
  startEarly(): void {
    const { signal } = this.#leaving;
    this.#early ??= this.#write([], signal)
      .catch((error: unknown) => {
        // Without a program to sync with, the next sync reports that.
        if (error instanceof FailedSyncError) this.#report(error);
      })
      .finally(() => {
        this.#early = undefined;
      });
  }

  /** Waits until everything that an operation has written is on the disk. */
  async syncNow(operation: string, signal: AbortSignal): Promise<void> {
    await this.#write([], signal);
    if (hasMissedError(this.#host.database, operation))
      throw new BoughError("the disk failed while the operation was writing to it");
  }

  /** Syncs all layers that are recorded by now. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pending;
    await this.#sync();
    if (this.#early === undefined) return;
    // Without a layer, what was copied is not needed. But an error of its sync may concern operations of other processes.
    if (unfinishedOperations(this.#host.database).length === 0)
      this.#leaving.abort(new Error("the engine is closing"));
    await this.#early;
  }

  async #syncSoon(): Promise<void> {
    const { signal } = this.#closing;
    const isOver = await this.#host.clock.sleep(delay, signal).then(
      () => false,
      () => true,
    );
    // A layer recorded during the sync may miss it, and needs another one.
    this.#pending = undefined;
    if (!isOver) await this.#sync();
  }

  async #sync(): Promise<void> {
    const { database, boot } = this.#host;
    try {
      this.#recordFailures();
      const layers = unsyncedLayers(database, boot);
      if (layers.length === 0) return;
      await Promise.all([this.#early, this.#write(layers, new AbortController().signal)]);
      // The early sync may have got the error of a layer.
      this.#recordFailures();
      inTransaction(database, () => noteSynced(database, layers, boot));
    } catch (error) {
      this.#report(error);
    }
  }

  /** `layers`: the unsynced ones, if known. */
  async #write(layers: readonly number[], signal: AbortSignal): Promise<void> {
    const { clock, layout } = this.#host;
    const startedAt = clock.now();
    try {
      await syncToDisk(this.#host, layout.layers, signal);
    } catch (error) {
      if (error instanceof FailedSyncError) {
        this.#unrecorded.push({ layers, startedAt });
        try {
          this.#recordFailures();
        } catch {
          // No layer counts as synced until this is recorded.
        }
      }
      throw error;
    }
  }

  #recordFailures(): void {
    for (const failure of this.#unrecorded) noteFailedSync(this.#host.database, failure);
    this.#unrecorded = [];
  }

  #report(error: unknown): void {
    const message = messageOf(error);
    this.#host.warn(
      error instanceof FailedSyncError
        ? `layers that were not on the disk yet count as lost, and images built on them must be built again: ${message}. ${error.hint}`
        : `the newest layers may not be written to the disk yet: ${message}`,
    );
  }
}
