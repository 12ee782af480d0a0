import { type Stats, statfsSync } from "node:fs";
import { isMissing } from "../../../context/file-system/file-error.ts";
import type { FileSystem } from "../../../context/file-system/file-system.ts";
import { lookAt, type PathStates, StateColumns } from "./path-states.ts";

/** A record of more paths would take as long to read as the files take to be looked at. */
const maxPaths = 50_000;

/**
 * File systems of Linux that give a directory another time with each name that comes or goes, at once; others, of the network, of
 * Windows, or by programs, may not: ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS, bcachefs.
 */
const exactTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e,
]);

/**
 * A file system that notes of everything below a directory which it is asked for in what state that is. What is asked for twice is
 * noted twice: to tell would cost more, in memory and time, than to look at it twice.
 */
export class ObservedFiles implements FileSystem {
  readonly #files: FileSystem;
  readonly #columns: StateColumns;
  #paths: string[] = [];
  /** Directories that have been read. */
  readonly #directories = new Set<string>();
  /** They are all on one, whose type is looked at. */
  #device: number | undefined;
  #isOver = false;

  /** `startedAt`: milliseconds since the epoch, before anything was asked. */
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

  /** Nothing is noted any more, and what has been is forgotten. */
  end(): void {
    this.#isOver = true;
    this.#paths = [];
    this.#directories.clear();
  }

  /** Returns states by paths relative to `root`; `undefined` where a change since the start might not show. */
  states(root: string): PathStates | undefined {
    for (const path of [root, ...this.#directories]) this.#note(path, lookAt(path));
    if (this.#isOver || !exactTypes.has(statfsSync(root).type)) return undefined;
    const paths = this.#paths.map((path) => path.slice(root.length + 1));
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
