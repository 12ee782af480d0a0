import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { hexOf } from "../../image/digest.ts";
import { isAbsent } from "../records/absent-layers.ts";
import { blobsDirectory, findBlobs } from "../records/imported-blobs.ts";
import { fingerprintLayer } from "../records/layer-fingerprint.ts";
import { type CheckedLayer, findLayer, layerDirectory } from "../records/layers.ts";
import type { Records } from "../records/records.ts";
import { lostLayers } from "../records/unsynced-layers.ts";
import { findLayerProblem } from "../records/whole-layers.ts";
import { findByteProblem } from "./file-check.ts";
import { add, type CheckRun } from "./report.ts";

interface LayerRow extends CheckedLayer {
  fingerprint: string | null;
}

export function listLayers(database: Database): LayerRow[] {
  return database
    .query<LayerRow, []>("SELECT id, parent, depth, marks, fingerprint FROM layers ORDER BY id")
    .all();
}

/** Checks a layer's own record and its parent's. */
export function findPlaceProblem(
  records: Records,
  layer: CheckedLayer,
  options: { countsUnknown: boolean },
): string | undefined {
  const { database } = records;
  const problem = findLayerProblem(records, layer, options);
  if (problem !== undefined || layer.parent === null) return problem;
  const below = findLayer(database, layer.parent);
  if (below === undefined) return "its parent layer has no record";
  return below.depth === layer.depth - 1 ? undefined : "its depth does not match its parent's";
}

export async function checkLayers(run: CheckRun): Promise<void> {
  const { database, report } = run;
  const lost = new Set(lostLayers(run));
  for (const layer of listLayers(database)) {
    report.layers++;
    const problem =
      findPlaceProblem(run, layer, { countsUnknown: true }) ??
      (lost.has(layer.id) ? "it was not completely written to the disk" : undefined) ??
      (isAbsent(database, layer.id) ? undefined : await findContentProblem(run, layer));
    if (problem !== undefined && findLayer(database, layer.id) !== undefined)
      add(run, { kind: "layer", name: layer.id.toString(36), problem });
    await checkBlobs(run, layer);
  }
}

async function checkBlobs(run: CheckRun, { id }: CheckedLayer): Promise<void> {
  const { database, layout } = run;
  if (!existsSync(blobsDirectory(layout, id))) return;
  const blobs = findBlobs(layout, id);
  let problem = blobs === undefined ? "it is incomplete" : undefined;
  for (const { path, digest } of blobs ?? []) problem ??= await findByteProblem(run, path, hexOf(digest));
  if (problem !== undefined && findLayer(database, id) !== undefined)
    add(run, { kind: "blob", name: id.toString(36), problem });
}

async function findContentProblem(
  { database, layout, pace, report }: CheckRun,
  { id, fingerprint }: LayerRow,
): Promise<string | undefined> {
  const now = await fingerprintLayer(layerDirectory(layout, id), pace, (bytes) => {
    report.bytes += bytes;
  });
  if (now === undefined) return "it cannot be read";
  if (fingerprint === null) {
    database
      .query<undefined, [string, number]>(
        "UPDATE layers SET fingerprint = ? WHERE id = ? AND fingerprint IS NULL",
      )
      .run(now, id);
    return undefined;
  }
  return now === fingerprint ? undefined : "its contents have changed since the first check";
}
