import { layerHeader } from "../../src/image/layer-header.ts";
import { endBytes, epochSeconds, padding } from "../../src/image/tar-header.ts";
import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";

const typeFlags = { file: "0", directory: "5", symlink: "2" } as const;

/** Returns an archive in the POSIX format. All entries have the same time. */
export function writeTar(entries: readonly ArchiveEntry[], date: Date): Uint8Array<ArrayBuffer> {
  const parts = sortEntries(entries).flatMap((entry) => {
    const content = contentOf(entry);
    const header = layerHeader({
      name: Buffer.from(entry.type === "directory" ? `${entry.path}/` : entry.path),
      flag: typeFlags[entry.type],
      mode: entry.type === "symlink" ? 0o777 : entry.mode,
      uid: entry.uid ?? 0,
      gid: entry.gid ?? 0,
      size: content.byteLength,
      modified: epochSeconds(date),
      target: Buffer.from(entry.type === "symlink" ? entry.target : ""),
      attributes: entry.type === "file" ? (entry.attributes ?? []) : [],
    });
    return [header, content, new Uint8Array(padding(content.byteLength))];
  });
  return new Uint8Array(Buffer.concat([...parts, new Uint8Array(endBytes)]));
}
