/** An entry of an archive. */
export type ArchiveEntry = {
  /** A relative path with `/`, without one at the end of a directory's. */
  path: string;
  uid?: number;
  gid?: number;
} & (
  | {
      type: "file";
      mode: number;
      content: Uint8Array | string;
      /** Extended attributes. */
      attributes?: readonly { name: string; value: Uint8Array }[];
    }
  | { type: "directory"; mode: number }
  | { type: "symlink"; target: string }
);

/** Returns entries in the order in which an archive has them: the same entries give the same bytes. */
export function sortEntries(entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  return entries.toSorted((one, other) => Buffer.compare(Buffer.from(one.path), Buffer.from(other.path)));
}

export function contentOf(entry: ArchiveEntry): Uint8Array {
  if (entry.type !== "file") return new Uint8Array();
  return typeof entry.content === "string" ? new TextEncoder().encode(entry.content) : entry.content;
}
