import type { ExtendedAttributes, SpecialKind } from "../../service/wire/file.ts";
import type { ResolvedRepository } from "../addresses/repository-address.ts";
import type { LosableImage } from "./layer.ts";

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
}

export interface StagedSymlink extends Staging {
  type: "symlink";
  target: string;
}

/** A named pipe or a device. Staged only for a service with the extension `entry-attributes`. */
type StagedSpecial = Staging & { type: "special"; mode: number } & SpecialKind;

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
