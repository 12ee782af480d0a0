/** Checks that the contents of files and layers are whole. */
import type { Database } from "bun:sqlite";
import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { type Pace, takeSteps } from "../../pace.ts";
import { isSha256 } from "../../sha256.ts";
import { errorCode } from "../../system-error.ts";
import type { Layout } from "../layout.ts";
import { isAbsent } from "../records/absent-layers.ts";
import { filePath } from "../records/files.ts";
import { type CheckedLayer, findLayer, layerDirectory } from "../records/layers.ts";
import type { Records } from "../records/records.ts";
import { hashInPieces } from "../records/stored-content.ts";
import { lostLayers } from "../records/unsynced-layers.ts";
import { findLayerProblem } from "../records/whole-layers.ts";
import { findBlobProblem, findByteProblem } from "./blobs.ts";

interface LayerRow extends CheckedLayer {
  fingerprint: string | null;
}

export function recordedLayers(database: Database): LayerRow[] {
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
  for (const layer of recordedLayers(database)) {
    report.layers++;
    const name = layer.id.toString(36);
    const blob = await findBlobProblem(run, layer.id);
    // Before the first check, what was imported tells more than a fingerprint of what is there.
    const inFiles = layer.fingerprint === null && blob?.mayBeInFiles === true ? blob.problem : undefined;
    const problem =
      findPlaceProblem(run, layer, { countsUnknown: true }) ??
      (lost.has(layer.id) ? "it was not completely written to the disk" : undefined) ??
      (isAbsent(database, layer.id) ? undefined : (inFiles ?? (await findContentProblem(run, layer))));
    if (findLayer(database, layer.id) === undefined) continue;
    if (problem !== undefined) addDamage(run, { kind: "layer", name, problem });
    if (blob !== undefined) addDamage(run, { kind: "blob", name, problem: blob.problem });
  }
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

/**
 * Returns one SHA-256 of a layer's directory: names, types, modes, owners, contents and files' modification times. A layer never
 * changes, so a different fingerprint means damage. Returns `undefined` if the layer can't be read.
 *
 * @param onBytes called with the number of bytes read since its last call
 */
async function fingerprintLayer(
  directory: string,
  pace: Pace,
  onBytes: (bytes: number) => void,
): Promise<string | undefined> {
  const hasher = new Bun.CryptoHasher("sha256");
  const waiting = [Buffer.alloc(0)];
  try {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const path =
        name.length === 0 ? Buffer.from(directory) : Buffer.concat([Buffer.from(`${directory}/`), name]);
      const stats = lstatSync(path);
      const row: unknown[] = [name.toString("latin1"), stats.mode, stats.uid, stats.gid];
      if (stats.isDirectory()) {
        const names = readdirSync(path, "buffer").sort(Buffer.compare);
        for (const below of names)
          waiting.push(name.length === 0 ? below : Buffer.concat([name, Buffer.from("/"), below]));
      } else if (stats.isSymbolicLink()) row.push(readlinkSync(path, "latin1"));
      else if (stats.isFile()) {
        const sha256 = await takeSteps(hashInPieces(path), pace, onBytes);
        row.push(stats.size, stats.mtimeMs, sha256 ?? null);
      } else row.push(stats.rdev);
      hasher.update(`${JSON.stringify(row)}\n`);
      const pause = pace.step();
      if (pause !== undefined) await pause;
    }
  } catch (error) {
    if (["EIO", "ENOENT", "ENOTDIR", "EUCLEAN"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
  return hasher.digest("hex");
}

interface FileRow {
  sha256: string;
  size: number;
}

export function recordedFiles(database: Database): FileRow[] {
  return database.query<FileRow, []>("SELECT sha256, size FROM files").all();
}

export function findFileProblem(layout: Layout, { sha256, size }: FileRow): string | undefined {
  if (!isSha256(sha256)) return "its record has an invalid SHA-256";
  const stats = lstatSync(filePath(layout, sha256), { throwIfNoEntry: false });
  if (stats === undefined) return "it is gone";
  if (!stats.isFile()) return "it is not a regular file";
  return stats.size === size ? undefined : `it has ${stats.size} bytes instead of ${size}`;
}

export async function checkFiles(run: CheckRun): Promise<void> {
  const { database, layout, report } = run;
  const isRecorded = database.query<{ found: number }, [string]>(
    "SELECT 1 AS found FROM files WHERE sha256 = ?",
  );
  for (const file of recordedFiles(database)) {
    report.files++;
    const problem =
      findFileProblem(layout, file) ??
      (await findByteProblem(run, filePath(layout, file.sha256), file.sha256));
    // The file may have been pruned meanwhile.
    if (problem !== undefined && isRecorded.get(file.sha256) !== null)
      addDamage(run, { kind: "file", name: file.sha256, problem });
  }
}

/** A part of an engine's data that is damaged. */
export interface Damage {
  /** `blob` is the archive of an imported layer; the unpacked layer itself may be intact. */
  kind: "database" | "file" | "layer" | "blob" | "image" | "tag";
  /** A file's SHA-256, the directory name of a layer or of its blobs, an image's UUID, or a tag. */
  name: string;
  problem: string;
  /** UUIDs of the images that it affects. */
  images: string[];
  tags: string[];
}

export interface EngineCheckReport {
  files: number;
  layers: number;
  images: number;
  /** Bytes that were read. */
  bytes: number;
  damage: Damage[];
}

/** The data of an engine that is checked, and the report to which a check adds. */
export interface CheckRun {
  database: Database;
  layout: Layout;
  pace: Pace;
  report: EngineCheckReport;
}

export function emptyReport(): EngineCheckReport {
  return { files: 0, layers: 0, images: 0, bytes: 0, damage: [] };
}

/** Adds damage to the report, and returns it. */
export function addDamage(
  { report }: Pick<CheckRun, "report">,
  { kind, name, problem }: Pick<Damage, "kind" | "name" | "problem">,
): Damage {
  const damage = { kind, name, problem, images: [], tags: [] };
  report.damage.push(damage);
  return damage;
}
