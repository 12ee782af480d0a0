import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";
import { blockBytes, padding } from "./tar-header.ts";

const typeFlags = { file: "0", directory: "5", symlink: "2" } as const;

/** An archive in the ustar format, which every tar reads. All entries are of one time; names take 100 bytes at most. */
export function writeTar(entries: readonly ArchiveEntry[], date: Date): Uint8Array<ArrayBuffer> {
  const parts = sortEntries(entries).flatMap((entry) => {
    const content = contentOf(entry);
    return [header(entry, content.byteLength, date), content, new Uint8Array(padding(content.byteLength))];
  });
  return new Uint8Array(Buffer.concat([...parts, new Uint8Array(endBytes)]));
}

/**
 * The header of a file, for an archive that is written as it is sent; with `link`, of a further link to that earlier entry.
 * Names may have any length (GNU's long names).
 */
export function fileHeader(
  { path, link, size, ...owned }: { path: string; link?: string | undefined; size: number } & FileAttributes,
  date: Date,
): Uint8Array<ArrayBuffer> {
  const entry = { type: "file", path: cut(path), ...owned, content: "" } as const;
  return new Uint8Array(
    Buffer.concat([
      longName("L", path, date),
      longName("K", link ?? "", date),
      link === undefined ? header(entry, size, date) : header(entry, 0, date, "1", cut(link)),
    ]),
  );
}

interface FileAttributes {
  mode: number;
  uid: number;
  gid: number;
}

/** Nothing for a name that a header has room for. */
function longName(flag: "L" | "K", name: string, date: Date): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(`${name}\0`);
  if (bytes.byteLength <= maxNameBytes + 1) return new Uint8Array();
  const entry = { type: "file", path: "././@LongLink", mode: 0o644, content: "" } as const;
  const parts = [
    header(entry, bytes.byteLength, date, flag),
    bytes,
    new Uint8Array(padding(bytes.byteLength)),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

/** The beginning of a long name, which a reader has from before; whole characters. */
function cut(name: string): string {
  const { read } = new TextEncoder().encodeInto(name, new Uint8Array(maxNameBytes));
  return name.slice(0, read);
}

/** Bytes that end an archive, after the last entry. */
export const endBytes = 2 * blockBytes;

const maxNameBytes = 100;

function header(
  entry: ArchiveEntry,
  size: number,
  date: Date,
  flag: string = typeFlags[entry.type],
  target = entry.type === "symlink" ? entry.target : "",
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(blockBytes);
  const put = (offset: number, length: number, text: string) => {
    const encoded = new TextEncoder().encode(text);
    if (encoded.byteLength > length) throw new Error(`too long for a tar header: ${text}`);
    bytes.set(encoded, offset);
  };
  const number = (offset: number, length: number, value: number) => {
    const octal = value.toString(8);
    if (octal.length < length) {
      put(offset, length, `${octal.padStart(length - 1, "0")}\0`);
      return;
    }
    // GNU: a big-endian number, with the first bit set.
    for (let at = length - 1, left = value; at > 0; at--, left = Math.floor(left / 256))
      bytes[offset + at] = left % 256;
    bytes[offset] = 0x80;
  };

  put(0, maxNameBytes, entry.type === "directory" ? `${entry.path}/` : entry.path);
  number(100, 8, entry.type === "symlink" ? 0o777 : entry.mode);
  number(108, 8, entry.uid ?? 0);
  number(116, 8, entry.gid ?? 0);
  number(124, 12, size);
  number(136, 12, Math.max(0, Math.floor(date.getTime() / 1000)));
  // The checksum is taken with its own field full of spaces.
  put(148, 8, " ".repeat(8));
  put(156, 1, flag);
  put(157, maxNameBytes, target);
  put(257, 8, "ustar\x0000");
  const checksum = bytes.reduce((sum, byte) => sum + byte, 0);
  put(148, 8, `${checksum.toString(8).padStart(6, "0")}\0 `);
  return bytes;
}
