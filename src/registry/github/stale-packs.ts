import type { Descriptor } from "../../image/oci-layout.ts";

/** If there are more, packs are joined: a build looks up the address of each pack that it needs. */
const maxPacks = 12;
/** The limit for one build. */
const maxCopiedBytes = 512 * 1024 * 1024;

/**
 * Chooses packs whose blobs are to be written again: those of which less than a half is used, and the smallest if there are too many.
 *
 * @param live the blobs of each pack that are still named
 * @param sizes of all packs
 */
export function chooseStalePacks(
  live: readonly (readonly [pack: string, blobs: readonly Pick<Descriptor, "size">[]])[],
  sizes: ReadonlyMap<string, number>,
): string[] {
  const bySize = live
    .map(([pack, blobs]) => ({ pack, used: blobs.reduce((sum, { size }) => sum + size, 0) }))
    .sort((one, other) => one.used - other.used);
  const chosen: string[] = [];
  let copied = 0;
  for (const { pack, used } of bySize) {
    const isStale = used * 2 < (sizes.get(pack) ?? 0);
    if (!isStale && bySize.length - chosen.length <= maxPacks) continue;
    if (copied + used > maxCopiedBytes) break;
    copied += used;
    chosen.push(pack);
  }
  return chosen;
}
