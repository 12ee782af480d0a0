import type { Stats } from "node:fs";

/**
 * What a walk asks the file system, in calls that block: a promise for every file of a large context costs more
 * than the file does. Whoever walks gives way to other work in between (`pace.ts`).
 */
export interface FileSystem {
  /** The names in a directory, in any order. */
  readDirectory(path: string): readonly string[];
  /** Facts about the path itself: a link is not followed. */
  stat(path: string): Stats;
  readLink(path: string): string;
}
