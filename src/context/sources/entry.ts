/** What a COPY or ADD source comes to in the build context. */

interface EntryBase {
  /** POSIX path relative to the context root, for messages and ignore rules. */
  contextPath: string;
  absolutePath: string;
  /**
   * POSIX path below the source's destination: for a directory source relative to that directory (`""` is the
   * directory itself), for a file source its base name, with `--parents` what follows the pivot point.
   */
  relativePath: string;
  /** Permission bits with setuid, setgid and sticky: 0 to 0o7777. */
  mode: number;
}

export interface FileEntry extends EntryBase {
  type: "file";
  size: number;
  /** What tells one state of a file from another; for the stat cache and to notice a file that changes while it is read. */
  stat: FileStat;
}

interface DirectoryEntry extends EntryBase {
  type: "directory";
}

interface SymlinkEntry extends EntryBase {
  type: "symlink";
  /** The target as the link has it, never followed. */
  target: string;
}

export type ContextEntry = FileEntry | DirectoryEntry | SymlinkEntry;

export interface FileStat {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a fraction: a number tells a quarter of a microsecond, and takes less than a BigInt. */
  mtimeMs: number;
  ctimeMs: number;
}

/** A source that comes to something else than its words say. */
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
}
