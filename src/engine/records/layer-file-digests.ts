import type { Database } from "bun:sqlite";

/** The length of the digest of a file that was put into a layer. */
export const digestBytes = 16;

/** The files that a layer was made of, for a later version of it. */
export interface LayerFileDigests {
  /** The digests of its files, in no particular order; `undefined` if they are few. */
  digests: Uint8Array | undefined;
  /** The bytes of its files; `undefined` if they have to be measured. */
  bytes: number | undefined;
  /** The version of the layer before it, and the bytes of the files that are hard-linked from there. */
  earlier: { id: number; linkedBytes: number } | undefined;
}

/**
 * Records the files that a layer was made of: the next version of the layer can then hard-link those that have not changed. Shared
 * files count as the later version's, which usually stays longer; what a removal frees is in `createFreedSizes`.
 */
export function recordFileDigests(
  database: Database,
  layer: number,
  { digests, bytes, earlier }: LayerFileDigests,
): void {
  if (bytes !== undefined) database.run("UPDATE layers SET size = ? WHERE id = ?", [bytes, layer]);
  if (digests !== undefined)
    database.run("INSERT INTO placed_files (layer, digests) VALUES (?, ?)", [layer, digests]);
  if (earlier === undefined) return;
  // It is unknown what two later versions of one layer share with each other, so they are measured.
  database.run(
    `UPDATE layers SET has_links = 1 WHERE id IN
       (SELECT id FROM layers WHERE id = ?1 AND heir IS NOT NULL UNION SELECT heir FROM layers WHERE id = ?1)`,
    [earlier.id],
  );
  database.run("UPDATE layers SET heir = ?, heir_bytes = ? WHERE id = ?", [
    ...[layer, earlier.linkedBytes, earlier.id],
  ]);
  for (const id of [layer, earlier.id])
    database.run("UPDATE layers SET has_links = 2 WHERE id = ? AND has_links = 0", [id]);
}

/**
 * Returns the uppermost layer of an image, and the digests of its files; `undefined` if they are unknown, or if the layer may not be on
 * the disk yet.
 */
export function findFileDigests(
  database: Database,
  image: string,
): { id: number; digests: Uint8Array } | undefined {
  return (
    database
      .query<{ id: number; digests: Uint8Array }, [string]>(
        `SELECT images.layer AS id, digests FROM images JOIN placed_files ON placed_files.layer = images.layer
         WHERE uuid = ? AND NOT EXISTS (SELECT 1 FROM unsynced_layers WHERE layer = images.layer)`,
      )
      .get(image) ?? undefined
  );
}
