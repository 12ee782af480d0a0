/** What no real archive exceeds. Archives from elsewhere are not trusted. */

/** An endless archive would be read forever. */
export const maxEntries = 2_000_000;
export const maxPathLength = 4096;
/** Bytes of all files, holes included: several times the size of the largest public images. */
export const maxUnpackedBytes = 512 * 1024 ** 3;

/** Returns true for a number that a user or group can have. */
export function isId(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32;
}
