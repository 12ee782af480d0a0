import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import { inTransaction } from "../../database.ts";
import { messageOf } from "../../errors.ts";
import type { Layout } from "../layout.ts";
import { syncToDisk } from "../system/disk.ts";
import type { Environment } from "../system/programs.ts";
import { noteSynced, unsyncedLayers } from "./unsynced-layers.ts";

/** Milliseconds for which a layer may be only in memory. */
const delay = 1_000;

export interface LayerSyncHost {
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
  /** An error of an early sync. The kernel reports each only once. */
  #failure: { error: unknown } | undefined;

  constructor(host: LayerSyncHost) {
    this.#host = host;
  }

  /** Call it when a layer is recorded. */
  request(): void {
    this.#pending ??= this.#syncSoon();
  }

  /** Starts to write what was copied by now, so that the next sync has less to write. Nobody waits for it. */
  startEarly(): void {
    this.#early ??= syncToDisk(this.#host, this.#host.layout.layers, this.#leaving.signal)
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#early = undefined;
      });
  }

  /** Syncs all layers that are recorded by now. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pending;
    await this.#sync();
    // Without a layer, what was copied is not needed.
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
    const { database, layout, boot, warn } = this.#host;
    try {
      const layers = unsyncedLayers(database, boot);
      if (layers.length === 0) return;
      await Promise.all([this.#early, syncToDisk(this.#host, layout.layers, new AbortController().signal)]);
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined) throw failure.error;
      inTransaction(database, () => noteSynced(database, layers));
    } catch (error) {
      // The layers stay noted as unsynced: if they are lost, they count as never made.
      warn(`the newest layers may not be written to the disk yet: ${messageOf(error)}`);
    }
  }
}
