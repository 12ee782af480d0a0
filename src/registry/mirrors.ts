import { BoughError } from "../errors.ts";
import { isDigest } from "../image/digest.ts";
import { type BlobSource, type StoredManifest, WrongBlobError } from "./blob-store.ts";
import type { RegistryClient } from "./client.ts";
import { downloadBlob } from "./download.ts";
import type { Place } from "./registries-conf.ts";

interface MirroredPlace extends Pick<Place, "reads"> {
  client: RegistryClient;
  store: Pick<BlobSource, "getManifest">;
}

/**
 * Creates a source that asks mirrors before the repository itself. One that lacks something is asked for other things later; one
 * that fails is not asked again.
 */
export function createMirroredSource(
  address: string,
  origin: MirroredPlace,
  mirrors: readonly MirroredPlace[],
): BlobSource {
  const failures = new Map<MirroredPlace, string>();
  const working = () => mirrors.filter((mirror) => !failures.has(mirror));

  async function askMirrors(reference: string, signal: AbortSignal): Promise<StoredManifest | undefined> {
    const skipped = isDigest(reference) ? "tags" : "digests";
    for (const mirror of working()) {
      if (mirror.reads === skipped) continue;
      try {
        const found = await mirror.store.getManifest(reference, signal);
        if (found !== undefined) return found;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BoughError)) throw error;
        failures.set(mirror, error.message);
      }
    }
    return undefined;
  }

  return {
    address,
    async getManifest(reference, signal) {
      const found = await askMirrors(reference, signal);
      if (found !== undefined) return found;
      try {
        return await origin.store.getManifest(reference, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BoughError) || failures.size === 0) throw error;
        const reasons = [...failures.values()].join("; ");
        throw new BoughError(`${error.message} (mirrors failed, too: ${reasons})`, {
          hint: error.hint,
          cause: error,
        });
      }
    },
    async openBlob(blob, signal, checks) {
      const [first = origin, ...others] = [...working(), origin];
      const clients = [first.client, ...others.map(({ client }) => client)] as const;
      const onFailure = (client: RegistryClient, { message }: Error) => {
        const mirror = mirrors.find((each) => each.client === client);
        if (mirror !== undefined) failures.set(mirror, message);
      };
      if (others.length === 0) return downloadBlob(clients, blob, { signal, checks });
      const used = new Set<RegistryClient>();
      const onChunk = (client: RegistryClient) => void used.add(client);
      // Checked here for any reader: it can then begin again with the next place.
      const chunks = await downloadBlob(clients, blob, { signal, checks: "digest", onFailure, onChunk });
      return blaming(chunks, (message) => {
        const guilty = working().filter(({ client }) => used.has(client));
        for (const mirror of guilty) failures.set(mirror, message);
        return guilty.length > 0;
      });
    },
  };
}

/** Passes a blob on. Calls `blame` if it is wrong, which returns true if a mirror may be to blame. */
async function* blaming(
  chunks: AsyncIterable<Uint8Array>,
  blame: (message: string) => boolean,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    if (!(error instanceof WrongBlobError)) throw error;
    throw new WrongBlobError(error.message, { isOfMirror: blame(error.message) });
  }
}
