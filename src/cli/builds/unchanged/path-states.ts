/** The state in which paths were found, and whether they still are in it. */
import { lstatSync, type Stats, statSync } from "node:fs";
import { isSettled } from "../../../context/hashing/stat-cache.ts";
import { growBuffer } from "../../../grow-buffer.ts";
import { sha256Of } from "../../../sha256.ts";

/** Paths, and digests over what `stat` says of them: of so many at a time, so that a look at them can end early. */
export interface PathStates {
  paths: readonly string[];
  digests: readonly string[];
}

/** What is at a path; `undefined` where nothing is. */
export type Look = (path: string) => Stats | undefined;

const orNothing = { throwIfNoEntry: false } as const;

/** A link itself. */
export const lookAt: Look = (path) => lstatSync(path, orNothing);

/** What a link leads to. */
export const lookBehind: Look = (path) => statSync(path, orNothing);

/** A write-ahead log that is empty is as good as none: who only reads makes and removes it. */
export const lookAtLog: Look = (path) => {
  const stats = lookAt(path);
  return stats?.size === 0 ? undefined : stats;
};

/** Device, inode, size, times: what a change of a file or directory, or another one in its place, shows in. */
const fields = 5;
const pathsPerDigest = 512;

/** What `stat` says of paths, in columns. */
export class StateColumns {
  readonly #now: number;
  #numbers = new Float64Array(64 * fields);
  #count = 0;

  /** `now`: milliseconds since the epoch, before any of the paths is looked at. */
  constructor(now: number) {
    this.#now = now;
  }

  /** `undefined`: there is nothing. False where it was changed so shortly before that another change would not show. */
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

/** `undefined` where one of them was changed so shortly before `now` (milliseconds since the epoch) that another change would not show. */
export function settledStates(paths: readonly string[], look: Look, now: number): PathStates | undefined {
  const columns = new StateColumns(now);
  return paths.every((path) => columns.add(look(path))) ? { paths, digests: columns.digests() } : undefined;
}

/** Ends at the first difference, or a little later. */
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
