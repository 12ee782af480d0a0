import type { Database } from "bun:sqlite";
import { lstatSync } from "node:fs";
import { isInUserNamespace } from "../../own-path.ts";
import { type Pace, takeSteps, takeStepsNow } from "../../pace.ts";
import { errorCode } from "../../system-error.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";
import { isOpaque, isWhiteout } from "../system/xattrs.ts";

/**
 * The number of overlayfs's marks in a layer, which delete files of the layers below. A copy of the engine's directory can lose them
 * silently (tar without --xattrs, `cp -r`, an ordinary user who can't make devices), and the deleted files would be back.
 */
export interface LayerMarks {
  whiteouts: number;
  /** Directories that hide those of the layers below. */
  opaque: number;
}

export const noMarks: LayerMarks = { whiteouts: 0, opaque: 0 };

/** The marks on record, and the inode of the directory that had them. */
interface MarksRecord extends LayerMarks {
  inode: number;
}

/**
 * Counts the marks below a directory. A layer's root has none of its own. `onName` is called with the name of each entry, and the
 * directory that has it.
 */
export function countMarks(
  directory: string,
  pace: Pace,
  onName?: (name: Path, parent: Path) => void,
): Promise<LayerMarks> {
  return takeSteps(walkMarks(directory, onName), pace);
}

/** Records a layer's marks, once its directory is in place. */
export function recordMarks(database: Database, id: number, directory: string, marks: LayerMarks): void {
  const text = JSON.stringify({ ...marks, inode: lstatSync(directory).ino } satisfies MarksRecord);
  database.query<undefined, [string, number]>("UPDATE layers SET marks = ? WHERE id = ?").run(text, id);
}

/**
 * Returns which of its marks a layer has lost, if any. Counts them only if the directory is a copy of the one on record: a layer
 * never changes. Older versions recorded none: `countsUnknown` counts those of their layers now.
 */
export function findLostMarks(
  database: Database,
  layer: { id: number; directory: string; inode: number; marks: string | null },
  { countsUnknown = false } = {},
): string | undefined {
  const { id, directory, inode } = layer;
  // Compares the text that `recordMarks` writes, without parsing it: each use of an image checks all of its layers.
  if (layer.marks?.endsWith(`,"inode":${inode}}`)) return undefined;
  const known: MarksRecord | undefined = layer.marks === null ? undefined : JSON.parse(layer.marks);
  if (known === undefined ? !countsUnknown : known.inode === inode) return undefined;
  const found = takeStepsNow(walkMarks(directory));
  const missing = [
    shortfall("whiteout", known?.whiteouts ?? 0, found.whiteouts),
    shortfall("opaque directory mark", known?.opaque ?? 0, found.opaque),
  ].filter((text) => text !== undefined);
  if (missing.length > 0)
    return `it was copied without ${missing.join(" and ")}: files that it deletes would be back`;
  try {
    recordMarks(database, id, directory, found);
  } catch {
    // On a full or read-only disk, they are counted again.
  }
  return undefined;
}

function shortfall(name: string, expected: number, found: number): string | undefined {
  if (found >= expected) return undefined;
  return `${expected - found} of ${expected} ${name}${expected === 1 ? "" : "s"}`;
}

function* walkMarks(
  directory: string,
  onName?: (name: Path, parent: Path) => void,
): Generator<undefined, LayerMarks> {
  const inUserNamespace = isInUserNamespace();
  const marks = { ...noMarks };
  const waiting: Path[] = [directory];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      for (const { name, type } of listDirectory(next)) {
        onName?.(name, next);
        const path = joinPath(next, name);
        if (type === "directory") {
          waiting.push(path);
          if (isOpaque(path, inUserNamespace)) marks.opaque++;
        } else if (type === "other" && isWhiteout(lstatSync(path))) marks.whiteouts++;
      }
    } catch (error) {
      // A command can make paths that are too long to be opened by name. Marks that deep are not counted.
      if (errorCode(error) !== "ENAMETOOLONG") throw error;
    }
    yield;
  }
  return marks;
}
