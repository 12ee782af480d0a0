import { sha256Of } from "../../sha256.ts";
import type { EntryList } from "./entry-list.ts";

/** A match of a source word. Matches are in the order of the words; those of a glob are sorted. */
export interface SourceMatch {
  /** The source as the Dockerfile names it, expanded. */
  source: string;
  isDirectory: boolean;
  /** A directory comes before its contents; siblings are sorted by the bytes of their names. */
  entries: EntryList;
}

/** Returns SHA-256 over all matches and the state of each file; see `EntryList.digest`. */
export function digestOfMatches(matches: readonly SourceMatch[]): string {
  return sha256Of(
    JSON.stringify(
      matches.map(({ source, isDirectory, entries }) => [source, isDirectory, entries.digest()]),
    ),
  );
}
