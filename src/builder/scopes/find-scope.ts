import { messageOf } from "../../errors.ts";
import type { FoundScope } from "./shared-cache.ts";
import type { SharedCache } from "./shared-caches.ts";

interface FindOptions {
  /** True if the build explains steps, which needs their inputs. */
  explains: boolean;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** Reads a cache. Warns if it can't be used, and says if it is empty; then returns `undefined`. */
export async function findScope(
  cache: SharedCache,
  { explains, signal, log }: FindOptions,
): Promise<FoundScope | undefined> {
  const { label, title } = cache.place;
  try {
    const found = await cache.read();
    cache.report(found);
    if (found.parts.length === 0) log.info(`cache: ${label} is empty`);
    if (found.written === undefined) return undefined;
    const index = explains ? await cache.readSteps(found) : found.index;
    return { name: title, index, origin: Array.from(found.keys, (key) => ({ cache: label, key })) };
  } catch (error) {
    signal.throwIfAborted();
    log.warn(`cache: ${label} is not used: ${messageOf(error)}`);
    return undefined;
  }
}
