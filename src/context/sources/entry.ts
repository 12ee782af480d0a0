/** The entries that COPY and ADD sources have in the build context. */

/** The places of an entry: in the context, on disk and in the image. */
export interface EntryPaths {
  /** POSIX path relative to the context root, for messages and ignore rules. */
  contextPath: string;
  absolutePath: string;
  /**
   * POSIX path below the source's destination. For a directory source it is relative to that directory (`""` is the directory
   * itself); for a file source it is the base name; with `--parents` it is the part after the pivot.
   */
  relativePath: string;
}

interface EntryBase extends EntryPaths {
  /** Permission bits with setuid, setgid and sticky: 0 to 0o7777. */
  mode: number;
}

export interface FileEntry extends EntryBase {
  type: "file";
  size: number;
  /** Distinguishes states of a file, for the stat cache and to detect a file that changes while it is read. */
  stat: FileStat;
}

interface DirectoryEntry extends EntryBase {
  type: "directory";
  /** Milliseconds since the epoch. */
  mtimeMs: number;
}

interface SymlinkEntry extends EntryBase {
  type: "symlink";
  mtimeMs: number;
  /** The link's target as written, never followed. */
  target: string;
}

/** A pipe, socket or device. Only sources for which `SourceOptions.whyLeftOut` allows them have such entries. */
type SpecialEntry = EntryBase & { type: "special"; mtimeMs: number; special: SpecialFile };

/** A file without content, which is never opened. */
export type SpecialFile =
  | { kind: "pipe" }
  | { kind: "socket" }
  | { kind: "character-device" | "block-device"; major: number; minor: number };

export type ContextEntry = FileEntry | DirectoryEntry | SymlinkEntry | SpecialEntry;

export interface FileStat {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a fraction: a number is exact to a quarter of a microsecond and smaller than a BigInt. */
  mtimeMs: number;
  ctimeMs: number;
}

/** A warning about a source that does not mean what its words suggest. */
export interface ContextWarning {
  message: string;
  /** Its name for `# check=skip=`; the first is Docker's. */
  rule:
    | "CopyIgnoredFile"
    | "CopyMatchesNothing"
    | "DefaultExclude"
    | "EmptySource"
    | "SourceAboveContext"
    | "SpecialFileLeftOut";
  /** The source, or the kind of files, that it is about. */
  subject: string;
  /** The name of the files, if only a default exclude leaves them out. */
  leavesOut?: string;
}
