import type { CopiedEntry } from "../../store/copies.ts";
import type { StagedEntry } from "../state/staged.ts";

/** Inodes of files with several hard links, by the path of the first one. */
export type CopiedInodes = ReadonlyMap<string, symbol>;

export function inodesOf(entries: readonly CopiedEntry[]): CopiedInodes {
  const inodes = new Map<string, symbol>();
  for (const entry of entries)
    if (entry.type === "file" && entry.original !== undefined && !inodes.has(entry.original))
      inodes.set(entry.original, Symbol(entry.original));
  return inodes;
}

/** Returns the path of the first hard link to an entry's file; of any other entry, its own path. */
export function firstPathOf(entry: CopiedEntry): string {
  return (entry.type === "file" ? entry.original : undefined) ?? entry.path;
}

export function withInode(staged: StagedEntry, entry: CopiedEntry, inodes: CopiedInodes): StagedEntry {
  const inode = staged.type === "file" ? inodes.get(firstPathOf(entry)) : undefined;
  return staged.type === "file" && inode !== undefined ? { ...staged, inode } : staged;
}
