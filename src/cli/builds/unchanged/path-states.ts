/** Records the state of paths, and compares them with it later. */
import { lstatSync, type Stats, statSync } from "node:fs";
import { growBuffer } from "../../../columns/grow-buffer.ts";
import { isSettled } from "../../../context/hashing/stat-cache.ts";
import { sha256Of } from "../../../sha256.ts";

/** Paths, and digests of their `stat` results. Each digest covers `pathsPerDigest` paths, so that a comparison can end early. */
export interface PathStates {
  paths: readonly string[];
  digests: readonly string[];
}

/** Returns the `stat` result of a path; `undefined` if nothing exists there. */
export type Look = (path: string) => Stats | undefined;

const orNothing = { throwIfNoEntry: false } as const;

/** Looks at a link itself. */
export const lookAt: Look = (path) => lstatSync(path, orNothing);

/** Follows a link. */
export const lookAtTarget: Look = (path) => statSync(path, orNothing);

/** Treats an empty write-ahead log as missing, since SQLite creates and removes one even for readers. */
export const lookAtLog: Look = (path) => {
  const stats = lookAt(path);
  return stats?.size === 0 ? undefined : stats;
};

/** Device, inode, size and two times: a file or directory that is changed or replaced differs in one of them. */
const fields = 5;
const pathsPerDigest = 512;

/** The `stat` results of paths, as an array of numbers. */
export class StateColumns {
  readonly #now: number;
  #numbers = new Float64Array(64 * fields);
  #count = 0;

  /** `now`: milliseconds since the epoch, taken before any of the paths is read. */
  constructor(now: number) {
    this.#now = now;
  }

  /** Adds the state of a path or a missing one. Returns false if it changed so recently that another change may not show. */
  add(stats: Stats | undefined): boolean {
    const at = this.#count++ * fields;
    if (at + fields > this.#numbers.length) {
      const bytes = (at + fields) * Float64Array.BYTES_PER_ELEMENT;
      this.#numbers = new Float64Array(growBuffer(this.#numbers.buffer, bytes));
    }
    setState(this.#numbers, at, stats);
    return stats === undefined || isSettled(stats, this.#now);
  }

  digests(): string[] {
    const count = Math.ceil(this.#count / pathsPerDigest);
    return Array.from({ length: count }, (_, index) => {
      const start = index * pathsPerDigest;
      return digestOf(this.#numbers, start * fields, Math.min(this.#count, start + pathsPerDigest) * fields);
    });
  }
}

/** Returns `undefined` if a path changed so recently that another change may not show. `now`: milliseconds since the epoch. */
export function settledStates(paths: readonly string[], look: Look, now: number): PathStates | undefined {
  const columns = new StateColumns(now);
  return paths.every((path) => columns.add(look(path))) ? { paths, digests: columns.digests() } : undefined;
}

/** Returns false at the first digest that differs. */
export function areUnchanged({ paths, digests }: PathStates, look: Look): boolean {
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
