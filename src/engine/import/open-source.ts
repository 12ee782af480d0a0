import type { BoughError } from "../../errors.ts";
import type { BlobSource } from "../../registry/blob-store.ts";
import type { EngineState } from "../state.ts";
import { startGuardedFetch } from "./fetch-guard.ts";

/** A store of blobs that the engine reads from. */
export interface OpenedSource extends Disposable {
  store: BlobSource;
  /** Returns the reason of a failure, if it is known better than its message says. */
  reasonOf(message: string): BoughError | undefined;
}

/** Opens the source of absent layers. For a client of a server it refuses local addresses, as an import does. */
export async function openSource(state: EngineState, address: string): Promise<OpenedSource> {
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
