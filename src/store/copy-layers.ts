import type { Database } from "bun:sqlite";

/** A `COPY --from` that has made a layer, or has found the layer of an equal one. */
export interface CopyLayer {
  /** Hash of all that the copy is made from. */
  hash: string;
  /** The same without the image that it is from. */
  place: string;
  /** The UUID of that image. */
  source: string;
  /** The layer's chain hash: that of the first of equal copies. */
  layer: string;
}

/** The layers that copies between images have come to, by session. */
export interface CopyLayerStore {
  /** The layer's chain hash. */
  get(session: string, hash: string): string | undefined;
  /** The copy to this place that was made or found last. */
  latest(session: string, place: string): Pick<CopyLayer, "source" | "layer"> | undefined;
  set(session: string, copy: CopyLayer): void;
}

/** Copies to one place that are remembered: of a stage that never comes to the same there would be more and more. */
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
