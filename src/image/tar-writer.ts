import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";
import { blockBytes, maxNameBytes, padding, writeHeader } from "./tar-header.ts";

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

function header(
  entry: ArchiveEntry,
  size: number,
  date: Date,
  flag: string = typeFlags[entry.type],
  target = entry.type === "symlink" ? entry.target : "",
): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  return writeHeader({
    name: encoder.encode(entry.type === "directory" ? `${entry.path}/` : entry.path),
    flag,
    mode: entry.type === "symlink" ? 0o777 : entry.mode,
    uid: entry.uid ?? 0,
    gid: entry.gid ?? 0,
    size,
    modified: Math.max(0, Math.floor(date.getTime() / 1000)),
    target: encoder.encode(target),
  });
}
