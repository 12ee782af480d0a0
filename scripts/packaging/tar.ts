import { endBytes, padding, secondsOf, writeHeader } from "../../src/image/tar-header.ts";
import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";

const typeFlags = { file: "0", directory: "5", symlink: "2" } as const;

/** Returns an archive in the ustar format, which every tar reads. All entries have the same time, names up to 100 bytes. */
export function writeTar(entries: readonly ArchiveEntry[], date: Date): Uint8Array<ArrayBuffer> {
  const parts = sortEntries(entries).flatMap((entry) => {
    const content = contentOf(entry);
    const header = writeHeader({
      name: Buffer.from(entry.type === "directory" ? `${entry.path}/` : entry.path),
      flag: typeFlags[entry.type],
      mode: entry.type === "symlink" ? 0o777 : entry.mode,
      uid: entry.uid ?? 0,
      gid: entry.gid ?? 0,
      size: content.byteLength,
      modified: secondsOf(date),
      target: Buffer.from(entry.type === "symlink" ? entry.target : ""),
    });
    return [header, content, new Uint8Array(padding(content.byteLength))];
  });
  return new Uint8Array(Buffer.concat([...parts, new Uint8Array(endBytes)]));
}
