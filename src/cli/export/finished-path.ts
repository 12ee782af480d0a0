import {
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError } from "../../errors.ts";
import { cannotWrite } from "../process/write-error.ts";

/** Has a file written under a temporary name in its directory, and renames it when it is complete. */
export async function writeWholeFile<T>(path: string, write: (temporary: string) => Promise<T>): Promise<T> {
  return writeBeside(filePlace(path), write);
}

/** Does the same for a directory, which must be new or empty. */
export async function writeWholeDirectory<T>(
  path: string,
  write: (temporary: string) => Promise<T>,
): Promise<T> {
  requireEmpty(path);
  return writeBeside(path, async (temporary) => {
    mkdirSync(temporary);
    const result = await write(temporary);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmdirSync(path);
    return result;
  });
}

/** Returns the path of the file that `writeWholeFile` replaces. Throws a BoughError if something else than a file is there. */
export function filePlace(path: string): string {
  const stats = statsOf(path, statSync);
  if (stats?.isDirectory() === true)
    throw new BoughError(`cannot write the file ${displayPath(path)}: it is a directory`);
  // The file would replace a device or a pipe.
  if (stats?.isFile() === false) {
    throw new BoughError(`${displayPath(path)} is not a regular file`, {
      hint: "Write - for standard output, as in tar:-.",
    });
  }
  // Replaces the target of a link, not the link.
  return stats === undefined ? path : realpathSync(path);
}

async function writeBeside<T>(path: string, write: (temporary: string) => Promise<T>): Promise<T> {
  const temporary = join(dirname(path), `.bough-${crypto.randomUUID()}`);
  try {
    const result = await write(temporary);
    renameSync(temporary, path);
    return result;
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error instanceof Error && "code" in error ? cannotWrite(path, error) : error;
  }
}

/** Throws a BoughError if `writeWholeDirectory` can't write there. */
export function requireEmpty(path: string): void {
  const stats = statsOf(path, lstatSync);
  if (stats === undefined || (stats.isDirectory() && readdirSync(path).length === 0)) return;
  throw new BoughError(`${displayPath(path)} already exists and is not an empty directory`, {
    hint: "Remove it, or name another place.",
  });
}

function statsOf(path: string, look: typeof lstatSync): Stats | undefined {
  try {
    return look(path, { throwIfNoEntry: false });
  } catch (error) {
    throw cannotWrite(path, error);
  }
}
