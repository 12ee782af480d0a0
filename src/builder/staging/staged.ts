/** What COPY and ADD have prepared for the next RUN: a value, keyed by absolute path in the image. */
export type StagedEntry = StagedFile | StagedDirectory | StagedSymlink;

/** Of an entry. */
export interface Owned {
  uid: number;
  gid: number;
  /** Of the instruction that staged it. */
  line?: number;
}

export interface StagedFile extends Owned {
  type: "file";
  sha256: string;
  size: number;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  content: StagedContent;
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
  | { kind: "local"; absolutePath: string }
  | { kind: "text"; text: string }
  | { kind: "url"; url: string };

export type Staged = ReadonlyMap<string, StagedEntry>;

/** Later entries replace earlier ones of the same path, and what was staged below a path that stops being a directory. */
export function stage(staged: Staged, additions: Iterable<readonly [string, StagedEntry]>): Staged {
  const result = new Map(staged);
  for (const [path, entry] of additions) {
    const previous = result.get(path);
    if (previous?.type === "directory" && entry.type === "directory" && !entry.isExplicit) continue;
    if (entry.type !== "directory" && previous?.type === "directory") {
      for (const below of result.keys()) if (below.startsWith(`${path}/`)) result.delete(below);
    }
    if (previous !== undefined) result.delete(path);
    result.set(path, entry);
  }
  return result;
}
