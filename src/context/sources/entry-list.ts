import { constants, type Stats } from "node:fs";
import { posix } from "node:path";
import { growBuffer, TextColumn } from "../../columns/text-column.ts";
import { sha256Of } from "../../sha256.ts";
import type { ContextEntry, EntryPaths, FileEntry, SpecialFile } from "./entry.ts";

/**
 * Entries in columns: for a large context, an object and three paths for each take noticeable memory. Entries are created as
 * objects on demand.
 */
export class EntryList implements Iterable<ContextEntry> {
  /** Names in their directories. An empty name means the directory or file itself. */
  readonly #names = new TextColumn();
  readonly #directories: EntryPaths[] = [];
  /** Targets of links by index. */
  readonly #targets = new Map<number, string>();
  /** Special files by index. */
  readonly #special = new Map<number, SpecialFile>();
  /** Times of entries other than files by index. The digest leaves them out, since a layer's hash does not depend on them. */
  readonly #times = new Map<number, number>();
  /** The numbers of all entries; see `add`. */
  #numbers = new Float64Array(columns);
  /** SHA-256 of all files; `undefined` until the first one is set. */
  #hashes: Buffer | undefined;
  /** Indexes of files with several hard links. The other links may be outside of the list. */
  readonly #linked: number[] = [];
  /** A symbol for all hard links to the same file, by index; see `groupLinks`. */
  #inodes: ReadonlyMap<number, symbol> | undefined;
  #digest: string | undefined;
  #files = 0;
  #bytes = 0;

  static of(...entries: readonly ContextEntry[]): EntryList {
    const list = new EntryList();
    for (const entry of entries) list.push(entry);
    return list;
  }

  get length(): number {
    return this.#names.length;
  }

  /** The number of files among the entries. */
  get files(): number {
    return this.#files;
  }

  /** The total size of the files. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the directory's number, for `add`. */
  addDirectory(paths: EntryPaths): number {
    return this.#directories.push(paths) - 1;
  }

  /** Adds an entry of a directory. `target`: a link's. */
  add(
    directory: number,
    name: string,
    stats: EntryStats,
    { target, special }: { target?: string | undefined; special?: SpecialFile | undefined } = {},
  ): void {
    const index = this.#names.push(name);
    this.#digest = undefined;
    const at = index * columns;
    if (at + columns > this.#numbers.length) this.#growTo(at + columns);
    const numbers = this.#numbers;
    numbers[at] = special === undefined ? stats.mode : (stats.mode & ~constants.S_IFMT) | specialBits;
    numbers[at + 1] = directory;
    if (target !== undefined) this.#targets.set(index, target);
    if (special !== undefined) this.#special.set(index, special);
    if ((stats.mode & constants.S_IFMT) !== constants.S_IFREG) {
      this.#times.set(index, stats.mtimeMs);
      return;
    }
    numbers[at + 2] = stats.size;
    numbers[at + 3] = stats.dev;
    numbers[at + 4] = stats.ino;
    numbers[at + 5] = stats.mtimeMs;
    numbers[at + 6] = stats.ctimeMs;
    if ((stats.nlink ?? 1) > 1) this.#linked.push(index);
    this.#files += 1;
    this.#bytes += stats.size;
  }

  push(entry: ContextEntry): void {
    const { contextPath, absolutePath, relativePath } = entry;
    const directory = this.addDirectory({ contextPath, absolutePath, relativePath });
    const mode = typeBits[entry.type] | entry.mode;
    if (entry.type === "file") {
      const { device: dev, inode: ino, mtimeMs, ctimeMs } = entry.stat;
      this.add(directory, "", { mode, size: entry.size, dev, ino, mtimeMs, ctimeMs });
      return;
    }
    const target = entry.type === "symlink" ? entry.target : undefined;
    const special = entry.type === "special" ? entry.special : undefined;
    this.add(directory, "", { ...noStats, mode, mtimeMs: entry.mtimeMs }, { target, special });
  }

  *[Symbol.iterator](): Generator<ListedEntry, undefined> {
    for (let index = 0; index < this.#names.length; index++) yield this.#entryAt(index);
  }

  at(index: number): ListedEntry | undefined {
    return index < this.#names.length ? this.#entryAt(index) : undefined;
  }

  /** Stores the SHA-256 of a file's content, in hex. */
  setHash({ index }: Pick<ListedFile, "index">, sha256: string): void {
    this.#hashes ??= Buffer.alloc(this.#names.length * hashBytes);
    this.#hashes.write(sha256, index * hashBytes, "hex");
  }

  /** Returns the hash that `setHash` stored. */
  hashAt(index: number): string {
    const hash = this.#hashes?.toString("hex", index * hashBytes, (index + 1) * hashBytes) ?? noHash;
    if (hash === noHash) throw new Error(`no hash for ${this.absolutePathAt(index)}`);
    return hash;
  }

  /**
   * Finds the hard links within the list, for `inodeAt`. Links to files elsewhere do not count.
   * The same number can stand for two large inodes: what has the same symbol is probably, but not certainly one file.
   */
  groupLinks(): void {
    this.#inodes ??= this.#findInodes();
  }

  /** Returns the symbol of a file with several hard links in the list; `undefined` for others, and before `groupLinks`. */
  inodeAt(index: number): symbol | undefined {
    return this.#inodes?.get(index);
  }

  absolutePathAt(index: number): string {
    const directory = this.#directoryOf(index);
    const name = this.#names.at(index);
    return name === "" ? directory.absolutePath : `${directory.absolutePath}/${name}`;
  }

  sizeAt(index: number): number {
    return this.#numbers[index * columns + 2] ?? 0;
  }

  mtimeMsAt(index: number): number {
    return this.#numbers[index * columns + 5] ?? 0;
  }

  /** Calls `visit` with each file's directory in the context, its name and its size, without creating an object. */
  forEachFile(visit: (directory: string, name: string, size: number) => void): void {
    const numbers = this.#numbers;
    let number = -1;
    let directory = "";
    for (let index = 0; index < this.#names.length; index++) {
      const at = index * columns;
      if (((numbers[at] ?? 0) & constants.S_IFMT) !== constants.S_IFREG) continue;
      if (numbers[at + 1] !== number) {
        number = numbers[at + 1] ?? 0;
        directory = this.#directoryOf(index).contextPath;
      }
      const name = this.#names.at(index);
      if (name !== "") visit(directory, name, numbers[at + 2] ?? 0);
      else visit(posix.dirname(`/${directory}`).slice(1), posix.basename(directory), numbers[at + 2] ?? 0);
    }
  }

  /**
   * Returns SHA-256 over the whole list. Lists with equal digests have entries with the same paths, types, modes and targets, and
   * all files in the same state.
   */
  digest(): string {
    this.#digest ??= this.#computeDigest();
    return this.#digest;
  }

  #findInodes(): Map<number, symbol> {
    const byFile = Map.groupBy(this.#linked, (index) =>
      this.#numbers.subarray(index * columns + 2, (index + 1) * columns).join(" "),
    );
    const inodes = new Map<number, symbol>();
    for (const [file, indexes] of byFile) {
      const inode = Symbol(file);
      if (indexes.length > 1) for (const index of indexes) inodes.set(index, inode);
    }
    return inodes;
  }

  #computeDigest(): string {
    const hasher = new Bun.CryptoHasher("sha256");
    const directories = this.#directories.map(({ contextPath, absolutePath, relativePath }) => [
      contextPath,
      absolutePath,
      relativePath,
    ]);
    hasher.update(JSON.stringify([directories, [...this.#targets, ...this.#special], this.#names.length]));
    this.#names.addTo(hasher);
    return hasher.update(this.#numbers.subarray(0, this.#names.length * columns)).digest("hex");
  }

  #entryAt(index: number): ListedEntry {
    const at = index * columns;
    const numbers = this.#numbers;
    const bits = numbers[at] ?? 0;
    const name = this.#names.at(index);
    const directory = this.#directoryOf(index);
    const { contextPath, absolutePath, relativePath } = name === "" ? directory : childPaths(directory, name);
    const mode = bits & 0o7777;
    const mtimeMs = this.#times.get(index) ?? 0;
    switch (bits & constants.S_IFMT) {
      case constants.S_IFDIR:
        return { type: "directory", contextPath, absolutePath, relativePath, mode, mtimeMs };
      case constants.S_IFLNK: {
        const target = this.#targets.get(index) ?? "";
        return { type: "symlink", contextPath, absolutePath, relativePath, mode, mtimeMs, target };
      }
      case specialBits: {
        const special = this.#special.get(index) ?? { kind: "pipe" };
        return { type: "special", contextPath, absolutePath, relativePath, mode, mtimeMs, special };
      }
      default: {
        const size = numbers[at + 2] ?? 0;
        const stat = {
          device: numbers[at + 3] ?? 0,
          inode: numbers[at + 4] ?? 0,
          size,
          mtimeMs: numbers[at + 5] ?? 0,
          ctimeMs: numbers[at + 6] ?? 0,
        };
        return { type: "file", contextPath, absolutePath, relativePath, mode, size, stat, list: this, index };
      }
    }
  }

  #growTo(numbers: number): void {
    const bytes = numbers * Float64Array.BYTES_PER_ELEMENT;
    this.#numbers = new Float64Array(growBuffer(this.#numbers.buffer, bytes));
  }

  #directoryOf(index: number): EntryPaths {
    const number = this.#numbers[index * columns + 1] ?? 0;
    const paths = this.#directories[number];
    if (paths === undefined) throw new Error(`no directory ${number}`);
    return paths;
  }
}

/** A file and its position in a list. */
export type ListedFile = FileEntry & { list: EntryList; index: number };

export type ListedEntry = ListedFile | Exclude<ContextEntry, FileEntry>;

/** The parts of an entry's `stat` that a list keeps. An entry that is not a file only has the mode. */
type EntryStats = Pick<Stats, "mode" | "size" | "dev" | "ino" | "mtimeMs" | "ctimeMs"> &
  Partial<Pick<Stats, "nlink">>;

const noStats: EntryStats = { mode: 0, size: 0, dev: 0, ino: 0, mtimeMs: 0, ctimeMs: 0 };

const columns = 7;
const hashBytes = 32;
const noHash = "0".repeat(2 * hashBytes);

/** The type bits of all kinds of special files in `#numbers`. */
const specialBits = constants.S_IFIFO;

const typeBits = {
  file: constants.S_IFREG,
  directory: constants.S_IFDIR,
  symlink: constants.S_IFLNK,
  special: specialBits,
} as const;

export function childPaths(parent: EntryPaths, name: string): EntryPaths {
  const contextPath = parent.contextPath === "" ? name : `${parent.contextPath}/${name}`;
  return {
    contextPath,
    absolutePath: `${parent.absolutePath}/${name}`,
    // One string for both if they are equal: paths take most of the memory of a large context.
    relativePath:
      parent.relativePath === parent.contextPath
        ? contextPath
        : parent.relativePath === ""
          ? name
          : `${parent.relativePath}/${name}`,
  };
}

/** A match of a source word. Matches are in the order of the words; those of a glob are sorted. */
export interface SourceMatch {
  /** The source as the Dockerfile names it, expanded. */
  source: string;
  isDirectory: boolean;
  /** A directory comes before its contents; siblings are sorted by the bytes of their names. */
  entries: EntryList;
}

/** Returns SHA-256 over all matches and the state of each file; see `EntryList.digest`. */
export function digestOfMatches(matches: readonly SourceMatch[]): string {
  return sha256Of(
    JSON.stringify(
      matches.map(({ source, isDirectory, entries }) => [source, isDirectory, entries.digest()]),
    ),
  );
}
