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
  #pending: Promise<void> | undefined;

  constructor(host: LayerSyncHost) {
    this.#host = host;
  }

  /** Call it when a layer is recorded. */
  request(): void {
    this.#pending ??= this.#syncSoon();
  }

  /** Syncs all layers that are recorded by now. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pending;
    await this.#sync();
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
      await syncToDisk(this.#host, layout.layers, new AbortController().signal);
      inTransaction(database, () => noteSynced(database, layers));
    } catch (error) {
      // The layers stay noted as unsynced: if they are lost, they count as never made.
      warn(`the newest layers may not be written to the disk yet: ${messageOf(error)}`);
    }
  }
}
