import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import { inTransaction } from "../../database.ts";
import { messageOf } from "../../errors.ts";
import type { Layout } from "../layout.ts";
import { syncToDisk } from "../system/disk.ts";
import type { Environment } from "../system/programs.ts";
import { noteSynced, unsyncedLayers } from "./unsynced-layers.ts";

/** Milliseconds that a layer may be in memory alone. */
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
 * Brings layers to the disk while the next commands run: twenty small ones take a disk about as long as one does, and no
 * command has to wait for it.
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

  /** What is recorded by now is on the disk after this. */
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
    // What comes while it is at work may come too late for it.
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
      // They stay noted: should they be lost, they count as never made.
      warn(`the newest layers may not be on the disk: ${messageOf(error)}`);
    }
  }
}
