import { messageOf } from "../../../errors.ts";
import { directoryMode } from "../../../image/file-mode.ts";
import { cacheKeyOf } from "../../../service/wire/mount.ts";
import type { CarriedCaches } from "../../job.ts";
import type { Entry } from "../scope-index.ts";
import type { OpenTarget } from "./cache-store.ts";
import type { LayerSender } from "./send-layers.ts";
import type { ImageSource } from "./shared-images.ts";
import type { Additions } from "./translate.ts";

/** Ids of the cache mounts that commands of the build have used, by key. */
export type UsedCaches = ReadonlyMap<string, string>;

/** Finds the newest contents of each cache mount, and notes in `used` which are used. */
export function createCarriedCaches(
  sources: readonly ImageSource[],
  used: Map<string, string>,
): CarriedCaches {
  const newest = new Map<string, { entry: Entry<"mounts">; source: string }>();
  for (const { index, address } of sources)
    for (const [key, entry] of index.mounts)
      if (entry.usedAt > (newest.get(key)?.entry.usedAt ?? -1)) newest.set(key, { entry, source: address });
  return {
    use({ id, uid = 0, gid = 0, mode }) {
      const bits = mode === undefined ? directoryMode : Number.parseInt(mode, 8);
      const key = cacheKeyOf({ id, uid, gid, mode: bits });
      used.set(key, id);
      const found = newest.get(key);
      return found && { source: found.source, digest: found.entry.digest, size: found.entry.size };
    },
  };
}

/** Sends the caches that a build has used, as far as the target wants them. Warns of each that can't be sent. */
export async function withCaches(
  additions: Additions,
  used: UsedCaches,
  { mounts, label }: Pick<OpenTarget, "mounts" | "label">,
  {
    sender,
    now,
    signal,
    warn,
  }: { sender: LayerSender; now: number; signal: AbortSignal; warn(text: string): void },
): Promise<Additions> {
  if (mounts === undefined) return additions;
  const sent = new Set(additions.sent);
  for (const [key, id] of used) {
    if (mounts.ids?.includes(id) === false) continue;
    try {
      const { mediaType, digest, size } = await sender.sendCache(key, mounts.maxBytes);
      additions.index.mounts.set(key, { id, mediaType, digest, size, usedAt: now });
      sent.add(digest);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Error)) throw error;
      warn(`cache: the cache mount ${JSON.stringify(id)} is not written to ${label}: ${messageOf(error)}`);
    }
  }
  return { ...additions, sent };
}
