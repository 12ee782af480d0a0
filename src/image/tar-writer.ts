import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";
import { blockBytes, padding } from "./tar-header.ts";

const typeFlags = { file: "0", directory: "5", symlink: "2" } as const;

/** An archive in the ustar format, which every tar reads. All entries are of one time; names take 100 bytes at most. */
export function writeTar(entries: readonly ArchiveEntry[], date: Date): Uint8Array<ArrayBuffer> {
  const parts = sortEntries(entries).flatMap((entry) => {
    const content = contentOf(entry);
    return [header(entry, content.byteLength, date), content, new Uint8Array(padding(content.byteLength))];
  });
  return new Uint8Array(Buffer.concat([...parts, new Uint8Array(2 * blockBytes)]));
}

function header(entry: ArchiveEntry, size: number, date: Date): Uint8Array {
  const bytes = new Uint8Array(blockBytes);
  const put = (offset: number, length: number, text: string) => {
    const encoded = new TextEncoder().encode(text);
    if (encoded.byteLength > length) throw new Error(`too long for a tar header: ${text}`);
    bytes.set(encoded, offset);
  };
  const number = (offset: number, length: number, value: number) =>
    put(offset, length, `${value.toString(8).padStart(length - 1, "0")}\0`);

  put(0, 100, entry.type === "directory" ? `${entry.path}/` : entry.path);
  number(100, 8, entry.type === "symlink" ? 0o777 : entry.mode);
  number(108, 8, entry.uid ?? 0);
  number(116, 8, entry.gid ?? 0);
  number(124, 12, size);
  number(136, 12, Math.floor(date.getTime() / 1000));
  // The checksum is taken with its own field full of spaces.
  put(148, 8, " ".repeat(8));
  put(156, 1, typeFlags[entry.type]);
  if (entry.type === "symlink") put(157, 100, entry.target);
  put(257, 8, "ustar\x0000");
  const checksum = bytes.reduce((sum, byte) => sum + byte, 0);
  put(148, 8, `${checksum.toString(8).padStart(6, "0")}\0 `);
  return bytes;
}
