import { type Stats, statfsSync } from "node:fs";
import { isMissing } from "../../../context/file-system/file-error.ts";
import type { FileSystem } from "../../../context/file-system/file-system.ts";
import { lookAt, type PathStates, StateColumns } from "./path-states.ts";

/** The limit of a record: reading more paths would take as long as looking at the files again. */
const maxPaths = 50_000;

/**
 * File systems of Linux that change a directory's time at once when an entry is added or removed: ext2 to ext4, XFS, Btrfs,
 * tmpfs, overlayfs, F2FS, ZFS, bcachefs. Network file systems, those of Windows, and FUSE may not.
 */
const exactTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e,
]);

/**
 * A file system that records the state of each path that it is asked for. A path that is asked for twice is recorded twice: to
 * detect that would cost more memory and time than to look at the path twice.
 */
export class ObservedFiles implements FileSystem {
  readonly #files: FileSystem;
  readonly #columns: StateColumns;
  #paths: string[] = [];
  /** Directories that have been read. */
  readonly #directories = new Set<string>();
  /** The device of all paths, so that one look at a file system's type is enough. */
  #device: number | undefined;
  #isOver = false;

  /** `startedAt`: milliseconds since the epoch, taken before any path is read. */
  constructor(files: FileSystem, startedAt: number) {
    this.#files = files;
    this.#columns = new StateColumns(startedAt);
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

  /** Ends the recording, and discards it. */
  end(): void {
    this.#isOver = true;
    this.#paths = [];
    this.#directories.clear();
  }

  /**
   * Returns states by paths relative to `root`, or absolute outside of it; `undefined` if a change since the start might not show.
   *
   * @param others roots of other contexts
   */
  states(root: string, others: readonly string[]): PathStates | undefined {
    for (const path of [root, ...others, ...this.#directories]) this.#note(path, lookAt(path));
    const isExact = [root, ...others].every((path) => exactTypes.has(statfsSync(path).type));
    if (this.#isOver || !isExact) return undefined;
    const isBelow = (path: string) => path === root || path.startsWith(`${root}/`);
    const paths = this.#paths.map((path) => (isBelow(path) ? path.slice(root.length + 1) : path));
    return { paths, digests: this.#columns.digests() };
  }

  #note(path: string, stats: Stats | undefined): void {
    if (this.#isOver) return;
    this.#paths.push(path);
    this.#device ??= stats?.dev;
    const isElsewhere = stats !== undefined && stats.dev !== this.#device;
    if (!this.#columns.add(stats) || isElsewhere || this.#paths.length > maxPaths) this.end();
  }
}
