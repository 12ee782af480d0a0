import type { Layer } from "../cache/layer-cache.ts";
import type { ResolvedRepository } from "../repositories/repository-address.ts";

/** What COPY and ADD have prepared for the next RUN: a value, keyed by absolute path in the image. */
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
  /** Seconds since the epoch. No part of what a layer is found by. */
  mtime?: number;
  /** What several names of one file, hard links, have in common. */
  inode?: symbol;
}

/** Seconds: what lies beyond it no service takes, and few file systems. */
const maxTime = 2 ** 34;

/** When a file was modified, as a service takes it. */
export function wireTime({ mtime }: StagedFile): number | undefined {
  return mtime !== undefined && Math.abs(mtime) < maxTime ? mtime : undefined;
}

export interface StagedDirectory extends Owned {
  type: "directory";
  mode: number;
  /** False where the directory only has to exist: one that is there already keeps its own owner and mode. */
  isExplicit: boolean;
}

export interface StagedSymlink extends Owned {
  type: "symlink";
  target: string;
}

/** Where the bytes come from once the service turns out not to have them yet. */
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

/** A file of what ADD takes apart. `digest`: the archive's own SHA-256. */
export type UnpackedContent =
  | { kind: "archive"; archive: ArchivePlace; digest: string }
  | { kind: "repository"; repository: ResolvedRepository };

/** Where an archive is read from. */
export type ArchivePlace = { absolutePath: string } | { url: string };

/** A file of another image. */
export interface ImageContent {
  kind: "image";
  /** UUID. */
  image: string;
  /** Whose image that is, where a stage of the build has made it: then it can be made again. */
  layer: Layer | undefined;
  /** Absolute. */
  path: string;
  /** The directory that was copied, whose archive has the file, too. */
  tree?: string;
}

export type Staged = ReadonlyMap<string, StagedEntry>;
