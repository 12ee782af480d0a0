import type { LayerSync } from "../records/layer-sync.ts";

/** Syncing less early costs more time than it saves later. */
const minFiles = 1_000;
const minBytes = 32 * 1024 * 1024;

/** Has the disk write what is copied into an upper directory before its layer is recorded. */
export class EarlySync {
  readonly #sync: Pick<LayerSync, "startEarly">;
  #files = 0;
  #bytes = 0;
  /** Bytes of large files since the last start. */
  #unsynced = 0;

  constructor(sync: Pick<LayerSync, "startEarly">) {
    this.#sync = sync;
  }

  /** Call it for each part of a large file: the disk writes it while the rest is copied. */
  addPart(bytes: number): void {
    this.#bytes += bytes;
    this.#unsynced += bytes;
    if (this.#unsynced < minBytes) return;
    this.#unsynced = 0;
    this.#sync.startEarly();
  }

  /** Call it for files that are complete. A sync between small files would hinder those that follow. */
  addFiles(count: number, bytes: number): void {
    this.#files += count;
    this.#bytes += bytes;
  }

  /** Call it after the last file: the disk writes while the command runs. */
  end(): void {
    if (this.#files >= minFiles || this.#bytes >= minBytes) this.#sync.startEarly();
  }
}
