/** The state in which files were found, and whether they still are in it. */
import { lstatSync, type Stats, statSync } from "node:fs";
import { isMissing } from "../../../context/file-system/file-error.ts";
import type { FileSystem } from "../../../context/file-system/file-system.ts";
import { isSettled } from "../../../context/hashing/stat-cache.ts";
import { growBuffer } from "../../../grow-buffer.ts";
import { sha256Of } from "../../../sha256.ts";

/** Paths, and digests over what `stat` says of them: of so many at a time, so that a look at them can end early. */
export interface FileStates {
  paths: readonly string[];
  digests: readonly string[];
}

/** Device, inode, size, times: what a change of a file or directory, or another one in its place, shows in. */
const fields = 5;
const pathsPerDigest = 512;

/** What `stat` says of paths, in columns. */
class StateColumns {
  #numbers = new Float64Array(64 * fields);
  #count = 0;

  /** `undefined`: there is nothing. */
  add(stats: Stats | undefined): void {
    const at = this.#count++ * fields;
    if (at + fields > this.#numbers.length) {
      const bytes = (at + fields) * Float64Array.BYTES_PER_ELEMENT;
      this.#numbers = new Float64Array(growBuffer(this.#numbers.buffer, bytes));
    }
    setState(this.#numbers, at, stats);
  }

  digests(): string[] {
    const count = Math.ceil(this.#count / pathsPerDigest);
    return Array.from({ length: count }, (_, index) => {
      const start = index * pathsPerDigest;
      return digestOf(this.#numbers, start * fields, Math.min(this.#count, start + pathsPerDigest) * fields);
    });
  }
}

function setState(numbers: Float64Array, at: number, stats: Stats | undefined): void {
  if (stats === undefined) return;
  numbers[at] = stats.dev;
  numbers[at + 1] = stats.ino;
  numbers[at + 2] = stats.size;
  numbers[at + 3] = stats.mtimeMs;
  numbers[at + 4] = stats.ctimeMs;
}

function digestOf(numbers: Float64Array, start: number, end: number): string {
  const part = numbers.subarray(start, end);
  return sha256Of(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
}

/**
 * Files as they are now; each may be missing. `undefined` where something is no file, or was changed so shortly before `now`
 * (milliseconds since the epoch) that another change would not show.
 */
export function settledStates(paths: readonly string[], look: Look, now: number): FileStates | undefined {
  const columns = new StateColumns();
  for (const path of paths) {
    const stats = look(path);
    if (stats !== undefined && !(stats.isFile() && isSettled(stats, now))) return undefined;
    columns.add(stats);
  }
  return { paths, digests: columns.digests() };
}

/** Ends at the first difference, or a little later. */
export function areUnchanged({ paths, digests }: FileStates, look: Look): boolean {
  for (const [index, digest] of digests.entries()) {
    const start = index * pathsPerDigest;
    const end = Math.min(paths.length, start + pathsPerDigest);
    const numbers = new Float64Array((end - start) * fields);
    for (let path = start; path < end; path++)
      setState(numbers, (path - start) * fields, look(paths[path] ?? ""));
    if (digestOf(numbers, 0, numbers.length) !== digest) return false;
  }
  return true;
}

/** What is at a path; `undefined` where nothing is. */
export type Look = (path: string) => Stats | undefined;

const orNothing = { throwIfNoEntry: false } as const;

/** A link itself. */
export const lookAt: Look = (path) => lstatSync(path, orNothing);

/** What a link leads to. */
export const lookBehind: Look = (path) => statSync(path, orNothing);

/** A log that is empty is as good as none: who only reads makes and removes it. */
export const lookAtLog: Look = (path) => {
  const stats = lookAt(path);
  return stats?.size === 0 ? undefined : stats;
};

/** Above it, what is remembered of a build would take as long to read as the files take to be looked at. */
const maxPaths = 20_000;

/** A file system that notes of everything which it is asked for in what state that is. */
export class ObservedFiles implements FileSystem {
  readonly #files: FileSystem;
  readonly #startedAt: number;
  readonly #paths = new Set<string>();
  #columns = new StateColumns();
  /** Directories that have been read; one that nothing was asked of itself has no state yet. */
  readonly #directories = new Set<string>();
  #isOver = false;

  /** `startedAt`: milliseconds since the epoch, before anything was asked. */
  constructor(files: FileSystem, startedAt: number) {
    this.#files = files;
    this.#startedAt = startedAt;
  }

  readDirectory(path: string): readonly string[] {
    if (!this.#isOver) this.#directories.add(path);
    return this.#files.readDirectory(path);
  }

  stat(path: string): Stats {
    try {
      const stats = this.#files.stat(path);
      this.#note(path, stats);
      return stats;
    } catch (error) {
      if (isMissing(error)) this.#note(path, undefined);
      else this.end();
      throw error;
    }
  }

  readLink(path: string): string {
    return this.#files.readLink(path);
  }

  /** Nothing is noted any more, and what has been is forgotten. */
  end(): void {
    this.#isOver = true;
    this.#paths.clear();
    this.#directories.clear();
    this.#columns = new StateColumns();
  }

  /** `undefined` where it is not certain that every change since the start would show. */
  states(): FileStates | undefined {
    for (const path of this.#directories) {
      if (this.#paths.has(path)) continue;
      const stats = lookAt(path);
      if (stats === undefined) return undefined;
      this.#note(path, stats);
    }
    return this.#isOver ? undefined : { paths: [...this.#paths], digests: this.#columns.digests() };
  }

  #note(path: string, stats: Stats | undefined): void {
    if (this.#isOver || this.#paths.has(path)) return;
    const isCertain = stats === undefined || isSettled(stats, this.#startedAt);
    if (isCertain && this.#paths.size < maxPaths) {
      this.#paths.add(path);
      this.#columns.add(stats);
    } else this.end();
  }
}
