import { constants, lstatSync } from "node:fs";
import { join } from "node:path";
import type { Room } from "../import-limits.ts";
import { type LayerThreads, needsThread } from "./layer-threads.ts";
import type { UnpackedLayer } from "./unpack-layer.ts";

/** A layer that is being unpacked to `place`, or has been. */
interface EarlyLayer {
  place: string;
  unpacked: Promise<UnpackedLayer>;
}

/** Unpacks blobs while others are still downloaded, before it is known which layers of the image they are. */
export class EarlyLayers {
  readonly #options: { directory: string; threads: LayerThreads; room: Room; inUserNamespace: boolean };
  #started = 0;
  readonly #layers = new Map<string, EarlyLayer>();

  constructor(options: { directory: string; threads: LayerThreads; room: Room; inUserNamespace: boolean }) {
    this.#options = options;
  }

  /** Starts to unpack a blob, which is verified meanwhile. If it is not a layer, that fails, but only `take` returns the error. */
  start(digest: string, path: string): void {
    const { directory, threads, room, inUserNamespace } = this.#options;
    const { size } = lstatSync(path);
    if (!needsThread(size)) return;
    const place = join(directory, `early-${this.#started++}`);
    const file = { path, offset: 0, length: size, name: path, flags: constants.O_NOFOLLOW };
    const job = { name: path, file, digest, copyTo: undefined, directory: place, inUserNamespace, room };
    const unpacked = threads.unpack(job);
    unpacked.catch(() => undefined);
    this.#layers.set(digest, { place, unpacked });
  }

  /** Returns a layer, only once: an image may have the same layer twice. */
  take(digest: string | undefined): EarlyLayer | undefined {
    const layer = digest === undefined ? undefined : this.#layers.get(digest);
    if (digest !== undefined) this.#layers.delete(digest);
    return layer;
  }
}
