import type { Stats } from "node:fs";

/**
 * The file-system calls of a walk. They block: for a large context, a promise for every file costs more than the file. The walk
 * itself yields to other work in between (`pace.ts`).
 */
export interface FileSystem {
  /** The names in a directory, in any order. */
  readDirectory(path: string): readonly string[];
  /** Returns facts about the path itself: a link is not followed. */
  stat(path: string): Stats;
  readLink(path: string): string;
}
