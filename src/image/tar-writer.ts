import { blockBytes, maxNameBytes, padding, writeHeader } from "./tar-header.ts";

/**
 * Returns the header of a file in an archive that is sent while it is written; with `link`, that of a hard link to an earlier
 * entry. Names may have any length (GNU's long names).
 */
export function fileHeader(
  { path, link, size, ...owned }: { path: string; link?: string | undefined; size: number } & FileAttributes,
  date: Date,
): Uint8Array<ArrayBuffer> {
  const file = { name: cut(path), ...owned, modified: secondsOf(date) };
  return new Uint8Array(
    Buffer.concat([
      longName("L", path, date),
      longName("K", link ?? "", date),
      link === undefined
        ? writeHeader({ ...file, flag: "0", size })
        : writeHeader({ ...file, flag: "1", size: 0, target: cut(link) }),
    ]),
  );
}

interface FileAttributes {
  mode: number;
  uid: number;
  gid: number;
}

/** Returns nothing for a name that fits in a header. */
function longName(flag: "L" | "K", name: string, date: Date): Uint8Array {
  const bytes = Buffer.from(`${name}\0`);
  const size = bytes.byteLength;
  if (size <= maxNameBytes + 1) return bytes.subarray(0, 0);
  const owned = { mode: 0o644, uid: 0, gid: 0 };
  const header = { name: Buffer.from("././@LongLink"), flag, ...owned, size, modified: secondsOf(date) };
  return Buffer.concat([writeHeader(header), bytes, new Uint8Array(padding(size))]);
}

/** Truncates a name to whole characters that fit in a header: a reader already has the long name. */
function cut(name: string): Uint8Array {
  const bytes = new Uint8Array(maxNameBytes);
  return bytes.subarray(0, new TextEncoder().encodeInto(name, bytes).written);
}

/** The number of bytes after the last entry that end an archive. */
export const endBytes = 2 * blockBytes;

export function secondsOf(date: Date): number {
  return Math.max(0, Math.floor(date.getTime() / 1000));
}
