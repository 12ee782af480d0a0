/**
 * What was in small files when they were hashed, until it is sent: to open and read one again, and to hash it once more, takes about
 * as long as sending it.
 */
export interface SmallContents {
  /** Copies the bytes; the oldest go where there is no room. */
  keep(sha256: string, bytes: Uint8Array): void;
  take(sha256: string): Uint8Array | undefined;
}

/** To read a larger file again costs little beside sending it. */
const maxFileBytes = 64 * 1024;
const maxBytes = 32 * 1024 * 1024;
/** Each takes some hundred bytes beside its own. */
const maxFiles = 10_000;

export function createSmallContents(): SmallContents {
  const contents = new Map<string, Uint8Array>();
  let total = 0;
  const take = (sha256: string) => {
    const bytes = contents.get(sha256);
    contents.delete(sha256);
    total -= bytes?.length ?? 0;
    return bytes;
  };
  return {
    keep(sha256, bytes) {
      if (bytes.length > maxFileBytes || contents.has(sha256)) return;
      for (const oldest of contents.keys()) {
        if (contents.size < maxFiles && total + bytes.length <= maxBytes) break;
        take(oldest);
      }
      contents.set(sha256, new Uint8Array(bytes));
      total += bytes.length;
    },
    take,
  };
}
