/** Files that get their name when they are complete, so that no reader finds an incomplete one. */
import { closeSync, constants, copyFileSync, openSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { renameOver } from "../paths/rename-over.ts";
import { libc } from "../programs/libc.ts";

/** Disposing it closes the file, and removes it unless it was kept. */
export interface TemporaryFile extends Disposable {
  /** Opens the file, for reading and writing, in each thread of this process. */
  path: string;
  descriptor: number;
  /** Gives the file its name, in place of the file that has it. */
  keep(path: string): void;
}

/**
 * Opens a new file that will be kept in `directory`. On Linux it has no name, if the file system allows that, so that a process that is
 * killed leaves nothing behind; otherwise it has a temporary name. The umask restricts its mode.
 */
export function openTemporaryFile(directory: string, mode = 0o644): TemporaryFile {
  return openNameless(directory, mode) ?? openNamed(directory, mode);
}

/** open(2): `O_TMPFILE` without `O_DIRECTORY`, whose value depends on the machine. */
const temporary = 0o20000000;

function openNameless(directory: string, mode: number): TemporaryFile | undefined {
  if (process.platform !== "linux") return undefined;
  let descriptor: number;
  try {
    descriptor = openSync(directory, constants.O_RDWR | constants.O_DIRECTORY | temporary, mode);
  } catch {
    return undefined;
  }
  const path = `/proc/self/fd/${descriptor}`;
  return {
    path,
    descriptor,
    keep(place) {
      const name = temporaryName(dirname(place));
      try {
        if (!link(path, name)) copyFileSync(path, name);
        renameOver(name, place);
      } catch (error) {
        rmSync(name, { force: true });
        throw error;
      }
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

/** fcntl.h: paths are relative to the working directory; the link in `/proc` is followed. */
const [atWorkingDirectory, followLink] = [-100, 0x400];

/** Returns false if the file system or the sandbox that this process is in does not allow it. */
function link(path: string, name: string): boolean {
  const text = (value: string) => Buffer.from(`${value}\0`);
  return libc().linkat(atWorkingDirectory, text(path), atWorkingDirectory, text(name), followLink) === 0;
}

function openNamed(directory: string, mode: number): TemporaryFile {
  const path = temporaryName(directory);
  const descriptor = openSync(path, "wx+", mode);
  let [isOpen, isKept] = [true, false];
  // Windows renames no open file.
  const close = () => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  return {
    path,
    descriptor,
    keep(place) {
      close();
      renameOver(path, place);
      isKept = true;
    },
    [Symbol.dispose]() {
      close();
      if (!isKept) rmSync(path, { force: true });
    },
  };
}

function temporaryName(directory: string): string {
  return join(directory, `.bough-${crypto.randomUUID()}`);
}
