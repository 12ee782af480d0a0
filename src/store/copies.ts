import type { Database } from "bun:sqlite";

/** What a source of a `COPY --from` comes to in its image, wherever it is copied to. */
export interface CopiedSource {
  /** Absolute, links followed. */
  path: string;
  /** The name under which it goes into a directory. */
  name: string;
  type: "file" | "directory";
  /** A directory's, each after the one that it is in; not the directory itself. Of a file: that one. */
  entries: readonly CopiedEntry[];
}

interface Entry {
  /** Relative to the source; empty for a file that is the source. */
  path: string;
  uid: number;
  gid: number;
}

export interface CopiedFile extends Entry {
  type: "file";
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  sha256: string;
  size: number;
  /** Seconds since the epoch, where it is known. */
  mtime?: number;
  /** The path of the first name, where this is a further link to a file. */
  original?: string;
}

export type CopiedEntry =
  | CopiedFile
  | (Entry & {
      type: "directory";
      mode: number;
      /** An archive has nothing of it but what is in it: one that is there already stays as it is. */
      isImplied?: true;
    })
  | (Entry & { type: "symlink"; target: string });

/** What the copies from an image came to: an image never changes, so it is kept for good. */
export interface CopyMemory {
  /** `words`: the sources and what else decides about them. */
  get(image: string, words: string): readonly CopiedSource[] | undefined;
  set(image: string, words: string, sources: readonly CopiedSource[]): void;
  /** The SHA-256 of the archive that was made of what `key` says. */
  archive(key: string): string | undefined;
  setArchive(key: string, sha256: string): void;
}

export function createCopyMemory(database: Database): CopyMemory {
  return {
    get(image, words) {
      const row = database
        .query<{ sources: Uint8Array }, [string, string]>(
          "SELECT sources FROM copied WHERE image = ? AND words = ?",
        )
        .get(image, words);
      return row === null ? undefined : unpack(row.sources);
    },
    set(image, words, sources) {
      const packed = Bun.zstdCompressSync(Buffer.from(JSON.stringify(sources)), { level: 1 });
      database
        .query("INSERT OR REPLACE INTO copied (image, words, sources) VALUES (?, ?, ?)")
        .run(image, words, packed);
    },
    archive: (key) =>
      database.query<{ sha256: string }, [string]>("SELECT sha256 FROM archive WHERE key = ?").get(key)
        ?.sha256,
    setArchive(key, sha256) {
      database.query("INSERT OR REPLACE INTO archive (key, sha256) VALUES (?, ?)").run(key, sha256);
    },
  };
}

function unpack(packed: Uint8Array): readonly CopiedSource[] {
  return JSON.parse(Buffer.from(Bun.zstdDecompressSync(packed)).toString());
}
