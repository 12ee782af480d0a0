import type { Database } from "bun:sqlite";

/** A `COPY --from` that has made a layer, or has reused the layer of an equal copy. */
interface CopyLayer {
  /** The hash of everything that the copy is made from. */
  hash: string;
  /** The same hash without the source image. */
  place: string;
  /** The UUID of the source image. */
  source: string;
  /** The layer's chain hash: that of the first of several equal copies. */
  layer: string;
}

/** The layers made by copies between images, by session. */
export interface CopyLayerStore {
  /** Returns the layer's chain hash. */
  get(session: string, hash: string): string | undefined;
  /** Returns the latest copy to this place. */
  latest(session: string, place: string): Pick<CopyLayer, "source" | "layer"> | undefined;
  set(session: string, copy: CopyLayer): void;
}

/** Copies remembered for one place: a stage with a new result in each build would add more and more. */
const maxCopies = 20;

export function createCopyLayerStore(database: Database): CopyLayerStore {
  return {
    get: (session, hash) =>
      database
        .query<Pick<CopyLayer, "layer">, [string, string]>(
          "SELECT layer FROM copy_layer WHERE session = ? AND hash = ?",
        )
        .get(session, hash)?.layer,

    latest: (session, place) =>
      database
        .query<Pick<CopyLayer, "source" | "layer">, [string, string]>(
          "SELECT source, layer FROM copy_layer WHERE session = ? AND place = ? ORDER BY id DESC LIMIT 1",
        )
        .get(session, place) ?? undefined,

    set(session, { hash, place, source, layer }) {
      const latest = this.latest(session, place);
      if (latest?.source === source && latest.layer === layer && this.get(session, hash) === layer) return;
      database
        .query(
          "INSERT OR REPLACE INTO copy_layer (session, hash, place, source, layer) VALUES (?, ?, ?, ?, ?)",
        )
        .run(session, hash, place, source, layer);
      database
        .query(
          `DELETE FROM copy_layer WHERE session = ?1 AND place = ?2 AND id NOT IN
           (SELECT id FROM copy_layer WHERE session = ?1 AND place = ?2 ORDER BY id DESC LIMIT ?3)`,
        )
        .run(session, place, maxCopies);
    },
  };
}
