import { PersistentMap } from "../../columns/persistent-map.ts";
import { hasWhiteoutName, whiteoutNameError } from "../../image/archive-limits.ts";
import type { ExtendedAttributes, SpecialKind } from "../../service/wire/file.ts";
import type { ResolvedRepository } from "../addresses/repository-address.ts";
import type { EvictableImage } from "./layer.ts";

/** An entry that COPY or ADD has prepared for the next RUN: a value, keyed by absolute path in the image. */
export type StagedEntry = StagedFile | StagedDirectory | StagedSymlink | StagedSpecial;

/** An entry's owner. */
export interface Owned {
  uid: number;
  gid: number;
  /** See `Owner`. */
  names?: string | undefined;
  /** The line of the instruction that staged it. */
  line?: number;
}

/** The owner that an instruction gives its entries. */
export type GivenOwner = Owned & { line: number };

interface Staging extends Owned {
  /** Seconds since the epoch. Not part of the chain hash. */
  mtime?: number | undefined;
  attributes?: ExtendedAttributes | undefined;
  /** Set for an entry of an archive: it replaces what the image has at its path, unless both are directories. */
  replaces?: true | undefined;
}

export interface StagedFile extends Staging {
  type: "file";
  sha256: string;
  size: number;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  content: StagedContent;
  /** The same symbol for all names of one file, hard links. */
  inode?: symbol | undefined;
}

/** The largest time, in seconds: no service and few file systems support later ones. */
const maxTime = 2 ** 34;

/** Returns an entry's modification time, if a service supports it. */
export function wireTime({ mtime }: StagedEntry): number | undefined {
  return mtime !== undefined && Math.abs(mtime) < maxTime ? mtime : undefined;
}

export interface StagedDirectory extends Staging {
  type: "directory";
  mode: number;
  /** False if the directory only has to exist: an existing one keeps its owner and mode. */
  isExplicit: boolean;
  /** Set if it exists only as a parent of a copied entry. Not part of the chain hash. */
  isParentOnly?: true;
}

export interface StagedSymlink extends Staging {
  type: "symlink";
  target: string;
}

/** A named pipe or a device. Staged only for a service with the extension `entry-attributes`. */
type StagedSpecial = Staging & { type: "special"; mode: number } & SpecialKind;

/** The source of a file's bytes, from which they are sent if the service lacks them. */
export type StagedContent =
  | LocalContent
  | { kind: "text"; text: string }
  | { kind: "url"; url: string }
  | UnpackedContent
  | ImageContent;

export interface LocalContent {
  kind: "local";
  absolutePath: string;
}

/** A file of an archive or repository that ADD unpacks. `digest`: the archive's own SHA-256. */
export type UnpackedContent =
  | { kind: "archive"; archive: ArchivePlace; digest: string }
  | { kind: "repository"; repository: ResolvedRepository };

/** The place that an archive is read from. */
export type ArchivePlace = { absolutePath: string } | { url: string };

/** A file of another image. */
export interface ImageContent {
  kind: "image";
  /** UUID. */
  image: string;
  /** Set if the service may have evicted the image: then the build can make or import it again. */
  evictable: EvictableImage | undefined;
  /** Absolute. */
  path: string;
  /** The copied directory, whose archive contains the file. */
  tree?: string;
}

export type Staged = ReadonlyMap<string, StagedEntry>;

/** Adds entries. A later entry replaces an earlier one at the same path; if that was a directory, also everything below it. */
export function addStaged(staged: Staged, additions: Iterable<readonly [string, StagedEntry]>): Staged {
  const addition = beginAddition(staged);
  for (const [path, entry] of additions) addition.add(path, entry);
  return addition.end();
}

/** Works like `addStaged`, one entry at a time. */
export function beginAddition(staged: Staged): {
  add(path: string, entry: StagedEntry): void;
  end(): Staged;
} {
  let before = PersistentMap.of(staged);
  let added = new Map<string, StagedEntry>();
  /** Paths that were directories before. What was staged below them is removed before anything new comes there, or at the end. */
  let replaced = new Set<string>();
  const clear = () => {
    before = before.with(added).without((path) => isBelow(path, replaced));
    added = new Map();
    replaced = new Set();
  };
  return {
    add(path, entry) {
      if (hasWhiteoutName(path))
        throw whiteoutNameError(path, "Copy it under another name, or leave it out.");
      if (isBelow(path, replaced)) clear();
      const previous = added.get(path) ?? before.get(path);
      if (previous?.type === "directory" && entry.type === "directory" && !entry.isExplicit) {
        // The time is that of the last source that is copied there.
        if (entry.mtime !== undefined) added.set(path, { ...previous, mtime: entry.mtime });
        return;
      }
      if (entry.type !== "directory" && previous?.type === "directory") replaced.add(path);
      added.set(path, entry);
    },
    end() {
      if (replaced.size > 0) clear();
      return before.with(added);
    },
  };
}

function isBelow(path: string, directories: ReadonlySet<string>): boolean {
  if (directories.size === 0) return false;
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
    if (directories.has(path.slice(0, end))) return true;
  return false;
}

/** Returns true if something is staged below `path`, so that `path` becomes a directory. */
export function isStagedBelow(staged: ReadonlyMap<string, NonNullable<unknown>>, path: string): boolean {
  return PersistentMap.of(staged).hasBelow(path);
}
