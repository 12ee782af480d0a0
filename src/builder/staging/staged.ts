import type { LosableImage } from "../cache/layer-cache.ts";
import type { ResolvedRepository } from "../repositories/repository-address.ts";

/** An entry that COPY or ADD has prepared for the next RUN: a value, keyed by absolute path in the image. */
export type StagedEntry = StagedFile | StagedDirectory | StagedSymlink;

/** An entry's owner. */
export interface Owned {
  uid: number;
  gid: number;
  /** The line of the instruction that staged it. */
  line?: number;
}

export interface StagedFile extends Owned {
  type: "file";
  sha256: string;
  size: number;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  content: StagedContent;
  /** Seconds since the epoch. Not part of the chain hash. */
  mtime?: number;
  /** The same symbol for all names of one file, hard links. */
  inode?: symbol | undefined;
}

/** The largest time, in seconds: no service and few file systems support later ones. */
const maxTime = 2 ** 34;

/** Returns a file's modification time, if a service supports it. */
export function wireTime({ mtime }: StagedFile): number | undefined {
  return mtime !== undefined && Math.abs(mtime) < maxTime ? mtime : undefined;
}

export interface StagedDirectory extends Owned {
  type: "directory";
  mode: number;
  /** False if the directory only has to exist: an existing one keeps its owner and mode. */
  isExplicit: boolean;
}

export interface StagedSymlink extends Owned {
  type: "symlink";
  target: string;
}

/** The source of a file's bytes, if the service turns out to lack them. */
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
  /** Set if the service may have lost the image: then the build can make or import it again. */
  losable: LosableImage | undefined;
  /** Absolute. */
  path: string;
  /** The copied directory, whose archive contains the file. */
  tree?: string;
}

export type Staged = ReadonlyMap<string, StagedEntry>;
