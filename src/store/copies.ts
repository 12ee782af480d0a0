import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { forgetOld } from "./database.ts";

/** A resolved source of a `COPY --from` in its image, independent of its destination. */
export interface CopiedSource {
  /** Absolute, with links followed. */
  path: string;
  /** The name under which it goes into a directory. */
  name: string;
  type: "file" | "directory";
  /** A directory's entries, parents first, without the directory itself. For a file, the file itself. */
  entries: readonly CopiedEntry[];
}

interface Entry {
  /** Relative to the source; empty for a file that is the source. */
  path: string;
  uid: number;
  gid: number;
  /** Seconds since the epoch, if known. */
  mtime?: number;
  /** Values of extended attributes in base64, by name. */
  attributes?: Readonly<Record<string, string>>;
}

export interface CopiedFile extends Entry {
  type: "file";
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  sha256: string;
  size: number;
  /** Set for a further hard link: the path of the file's first name. */
  original?: string;
}

export type CopiedEntry =
  | CopiedFile
  | (Entry & {
      type: "directory";
      mode: number;
      /** The archive only has the directory's entries: an existing directory keeps its attributes. */
      isImplied?: true;
    })
  | (Entry & { type: "symlink"; target: string })
  /** Special files come only from archives. */
  | (Entry & { type: "special"; mode: number } & (
        | { kind: "pipe" }
        | { kind: "character-device" | "block-device"; major: number; minor: number }
      ));

/** A cache of resolved sources of copies from images, which never change. They are removed with their image, or after some months. */
export interface CopyMemory {
  /** `words`: the source arguments, and everything else that decides what they mean. */
  get(image: string, words: string): readonly CopiedSource[] | undefined;
  set(image: string, words: string, sources: readonly CopiedSource[]): void;
  /** Returns the SHA-256 of the archive that was made for `key`. */
  archive(key: string): string | undefined;
  setArchive(key: string, sha256: string): void;
}

export function createCopyMemory(database: Database, clock: Pick<Clock, "now">): CopyMemory {
  return {
    get(image, words) {
      const row = database
        .query<{ sources: Uint8Array }, [string, string]>(
          "SELECT sources FROM copied WHERE image = ? AND words = ?",
        )
        .get(image, words);
      return row === null ? undefined : JSON.parse(Bun.zstdDecompressSync(row.sources).toString());
    },
    set(image, words, sources) {
      const packed = Bun.zstdCompressSync(Buffer.from(JSON.stringify(sources)), { level: 1 });
      const now = clock.now();
      forgetOld(database, "copied", now);
      database
        .query("INSERT OR REPLACE INTO copied (image, words, sources, written_at) VALUES (?, ?, ?, ?)")
        .run(image, words, packed, now);
    },
    archive: (key) =>
      database.query<{ sha256: string }, [string]>("SELECT sha256 FROM archive WHERE key = ?").get(key)
        ?.sha256,
    setArchive(key, sha256) {
      const now = clock.now();
      forgetOld(database, "archive", now);
      database
        .query("INSERT OR REPLACE INTO archive (key, sha256, written_at) VALUES (?, ?, ?)")
        .run(key, sha256, now);
    },
  };
}

/** A `COPY --from` that has made a layer, or has reused the layer of an equal copy. */
export interface CopyLayer {
  /** The hash of everything that the copy is made from. */
  hash: string;
  /** The same hash without the source image. */
  place: string;
  /** The UUID of the source image. */
  source: string;
  /** The layer's chain hash: that of the first of several equal copies. */
  layer: string;
  /** The origin of the layer, see `layer-origin.ts`; null if it is unknown. */
  origin: string | null;
}

/** The layers made by copies between images, by session. */
export interface CopyLayerStore {
  get(session: string, hash: string): Pick<CopyLayer, "layer" | "origin"> | undefined;
  /** Returns the latest copy to this place. */
  latest(session: string, place: string): Pick<CopyLayer, "source" | "layer" | "origin"> | undefined;
  set(session: string, copy: CopyLayer): void;
}

/** The limit of stored copies with one `place`: a stage with a new result in each build would add more and more. */
const maxCopies = 20;

export function createCopyLayerStore(database: Database): CopyLayerStore {
  return {
    get: (session, hash) =>
      database
        .query<Pick<CopyLayer, "layer" | "origin">, [string, string]>(
          "SELECT layer, origin FROM copy_layer WHERE session = ? AND hash = ?",
        )
        .get(session, hash) ?? undefined,

    latest: (session, place) =>
      database
        .query<Pick<CopyLayer, "source" | "layer" | "origin">, [string, string]>(
          "SELECT source, layer, origin FROM copy_layer WHERE session = ? AND place = ? ORDER BY id DESC LIMIT 1",
        )
        .get(session, place) ?? undefined,

    set(session, { hash, place, source, layer, origin }) {
      const isLatest = Bun.deepEquals(this.latest(session, place), { source, layer, origin });
      if (isLatest && Bun.deepEquals(this.get(session, hash), { layer, origin })) return;
      database
        .query(
          "INSERT OR REPLACE INTO copy_layer (session, hash, place, source, layer, origin) VALUES (?, ?, ?, ?, ?, ?)",
        )
        .run(session, hash, place, source, layer, origin);
      database
        .query(
          `DELETE FROM copy_layer WHERE session = ?1 AND place = ?2 AND id NOT IN
           (SELECT id FROM copy_layer WHERE session = ?1 AND place = ?2 ORDER BY id DESC LIMIT ?3)`,
        )
        .run(session, place, maxCopies);
    },
  };
}
