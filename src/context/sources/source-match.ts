import { sha256Of } from "../../sha256.ts";
import type { EntryList } from "./entry-list.ts";

/** One match of one source word, in the order of the words, matches of a glob sorted. */
export interface SourceMatch {
  /** The source as the Dockerfile names it, expanded. */
  source: string;
  isDirectory: boolean;
  /** A directory comes before what is in it; siblings are sorted by byte order of their names. */
  entries: EntryList;
}

/** SHA-256 over what sources have come to, and the state of each file: see `EntryList.digest`. */
export function digestOfMatches(matches: readonly SourceMatch[]): string {
  return sha256Of(
    JSON.stringify(
      matches.map(({ source, isDirectory, entries }) => [source, isDirectory, entries.digest()]),
    ),
  );
}
