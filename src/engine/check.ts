import type { Database } from "bun:sqlite";
import { existsSync, lstatSync } from "node:fs";
import { isDamaged } from "../database.ts";
import { messageOf } from "../errors.ts";
import { hexOf } from "../image/digest.ts";
import { createPace, type Pace } from "../pace.ts";
import { isSha256 } from "../sha256.ts";
import { withEngineDirectory } from "./engine-directory.ts";
import type { Layout } from "./layout.ts";
import { filePath } from "./records/files.ts";
import { blobsDirectory, findBlobs } from "./records/imported-blobs.ts";
import { parseObject } from "./records/json-column.ts";
import { fingerprintLayer } from "./records/layer-fingerprint.ts";
import { findLayer, type LayerRecord, layerChain, layerDirectory } from "./records/layers.ts";
import { hashInPieces } from "./records/stored-content.ts";
import { findLayerProblem } from "./records/whole-layers.ts";

/** Something of an engine's that is not as it was stored. */
export interface Damage {
  /** `blob`: a file that an imported layer came in; the layer itself is unpacked, and may be whole. */
  kind: "database" | "file" | "layer" | "blob" | "image" | "tag";
  /** A file's SHA-256, a layer's directory (of a blob, too), an image's UUID, a tag. */
  name: string;
  problem: string;
  /** UUIDs of the images that it takes along. */
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

interface EngineCheckOptions {
  signal: AbortSignal;
  /** What has been looked at so far. */
  onProgress(done: Omit<EngineCheckReport, "damage">): void;
}

/**
 * Goes through all that the engine keeps: every uploaded file is hashed, every layer read to its end. Builds may go on
 * meanwhile. The first time that a layer is seen its fingerprint is written down; from then on a change in it is noticed.
 */
export async function checkEngine(
  directory: string,
  options: EngineCheckOptions,
): Promise<EngineCheckReport> {
  try {
    return await withEngineDirectory(directory, (database, layout) => checkAll(database, layout, options));
  } catch (error) {
    if (!isDamaged(error)) throw error;
    const damage: Damage = {
      kind: "database",
      name: "engine.db",
      problem: messageOf(error),
      images: [],
      tags: [],
    };
    return { files: 0, layers: 0, images: 0, bytes: 0, damage: [damage] };
  }
}

/** What takes no reading: whether everything is where its record says, and as large. Takes milliseconds. */
export function checkQuickly(directory: string): Promise<EngineCheckReport> {
  return withEngineDirectory(directory, (database, layout) => {
    const report: EngineCheckReport = { files: 0, layers: 0, images: 0, bytes: 0, damage: [] };
    const look = { database, layout, report };
    for (const file of listFiles(database)) {
      report.files++;
      const problem = findFileProblem(layout, file);
      if (problem !== undefined) add(look, { kind: "file", name: file.sha256, problem });
    }
    for (const layer of listLayers(database)) {
      report.layers++;
      const problem = findPlaceProblem(database, layout, layer);
      if (problem !== undefined) add(look, { kind: "layer", name: layer.id.toString(36), problem });
    }
    checkImages(look);
    return report;
  });
}

async function checkAll(
  database: Database,
  layout: Layout,
  options: EngineCheckOptions,
): Promise<EngineCheckReport> {
  const report: EngineCheckReport = {
    files: 0,
    layers: 0,
    images: 0,
    bytes: 0,
    damage: findDatabaseDamage(database),
  };
  if (report.damage.length > 0) return report;
  const pace = createPace(options.signal, () => options.onProgress(report));
  const look: Look = { database, layout, pace, report };
  await checkFiles(look);
  await checkLayers(look);
  checkImages(look);
  options.onProgress(report);
  return report;
}

interface Look {
  database: Database;
  layout: Layout;
  pace: Pace;
  report: EngineCheckReport;
}

function add({ report }: Pick<Look, "report">, damage: Omit<Damage, "images" | "tags">): void {
  report.damage.push({ ...damage, images: [], tags: [] });
}

function findDatabaseDamage(database: Database): Damage[] {
  const rows = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check(10)").all();
  return rows.flatMap(({ integrity_check: problem }) =>
    problem === "ok" ? [] : [{ kind: "database" as const, name: "engine.db", problem, images: [], tags: [] }],
  );
}

interface FileRow {
  sha256: string;
  size: number;
}

function listFiles(database: Database): FileRow[] {
  return database.query<FileRow, []>("SELECT sha256, size FROM files").all();
}

function findFileProblem(layout: Layout, { sha256, size }: FileRow): string | undefined {
  if (!isSha256(sha256)) return "its record names no file";
  const stats = lstatSync(filePath(layout, sha256), { throwIfNoEntry: false });
  if (stats === undefined) return "it is gone";
  if (!stats.isFile()) return "something else is in its place";
  return stats.size === size ? undefined : `it has ${stats.size} bytes instead of ${size}`;
}

async function checkFiles(look: Look): Promise<void> {
  const { database, layout, report } = look;
  const isRecorded = database.query<{ found: number }, [string]>(
    "SELECT 1 AS found FROM files WHERE sha256 = ?",
  );
  for (const file of listFiles(database)) {
    report.files++;
    const problem =
      findFileProblem(layout, file) ??
      (await findByteProblem(look, filePath(layout, file.sha256), file.sha256));
    // It may have been pruned meanwhile.
    if (problem !== undefined && isRecorded.get(file.sha256) !== null)
      add(look, { kind: "file", name: file.sha256, problem });
  }
}

async function findByteProblem(
  { pace, report }: Look,
  path: string,
  sha256: string,
): Promise<string | undefined> {
  const pieces = hashInPieces(path);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true && value === undefined) return "it cannot be read";
    if (done === true) return value === sha256 ? undefined : "its bytes have changed";
    report.bytes += value;
    const pause = pace.step();
    if (pause !== undefined) await pause;
  }
}

interface LayerRow extends LayerRecord {
  fingerprint: string | null;
}

function listLayers(database: Database): LayerRow[] {
  return database.query<LayerRow, []>("SELECT id, parent, depth, fingerprint FROM layers ORDER BY id").all();
}

/** Looks at a layer's own record and the one below it. */
function findPlaceProblem(database: Database, layout: Layout, layer: LayerRecord): string | undefined {
  const problem = findLayerProblem(layout, layer);
  if (problem !== undefined || layer.parent === null) return problem;
  const below = findLayer(database, layer.parent);
  if (below === undefined) return "the layer that it stands on is not known";
  return below.depth === layer.depth - 1 ? undefined : "its record does not fit the layer that it stands on";
}

async function checkLayers(look: Look): Promise<void> {
  const { database, layout, report } = look;
  for (const layer of listLayers(database)) {
    report.layers++;
    const problem = findPlaceProblem(database, layout, layer) ?? (await findContentProblem(look, layer));
    if (problem !== undefined && findLayer(database, layer.id) !== undefined)
      add(look, { kind: "layer", name: layer.id.toString(36), problem });
    await checkBlobs(look, layer);
  }
}

async function checkBlobs(look: Look, { id }: LayerRecord): Promise<void> {
  const { database, layout } = look;
  if (!existsSync(blobsDirectory(layout, id))) return;
  const blobs = findBlobs(layout, id);
  let problem = blobs === undefined ? "not all of it is there" : undefined;
  for (const { path, digest } of blobs ?? []) problem ??= await findByteProblem(look, path, hexOf(digest));
  if (problem !== undefined && findLayer(database, id) !== undefined)
    add(look, { kind: "blob", name: id.toString(36), problem });
}

async function findContentProblem(
  { database, layout, pace, report }: Look,
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
  return now === fingerprint ? undefined : "what is in it has changed since it was checked first";
}

/** Their own records, and which of them stand on a damaged layer. */
function checkImages(look: Omit<Look, "pace">): void {
  const { database, report } = look;
  const layers = new Map(
    report.damage.flatMap((damage) =>
      damage.kind === "layer" ? [[Number.parseInt(damage.name, 36), damage]] : [],
    ),
  );
  const images = database
    .query<{ uuid: string; layer: number; config: string }, []>("SELECT uuid, layer, config FROM images")
    .all();
  const tags = database.query<{ tag: string }, [string]>("SELECT tag FROM tags WHERE image = ? ORDER BY tag");
  for (const { uuid, layer, config } of images) {
    report.images++;
    const chain = layerChain(database, layer);
    const found = chain.map((id) => layers.get(id)).filter((damage) => damage !== undefined);
    if (chain.length === 0 || parseObject(config) === undefined) {
      const problem = chain.length === 0 ? "its layer is not known" : "its record is damaged";
      const damage: Damage = { kind: "image", name: uuid, problem, images: [], tags: [] };
      report.damage.push(damage);
      found.push(damage);
    }
    for (const damage of found) {
      damage.images.push(uuid);
      damage.tags.push(...tags.all(uuid).map(({ tag }) => tag));
    }
  }
  const lost = database
    .query<{ tag: string; image: string }, []>(
      "SELECT tag, image FROM tags WHERE image NOT IN (SELECT uuid FROM images)",
    )
    .all();
  for (const { tag, image } of lost)
    report.damage.push({
      kind: "tag",
      name: tag,
      problem: `there is no image ${image}`,
      images: [],
      tags: [tag],
    });
}
