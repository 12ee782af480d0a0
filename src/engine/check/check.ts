import type { Database } from "bun:sqlite";
import { damageOf } from "../../database.ts";
import { createPace } from "../../pace.ts";
import { withEngineDirectory } from "../engine-directory.ts";
import type { Layout } from "../layout.ts";
import { layerChain } from "../records/layers.ts";
import { parseObject } from "../records/records.ts";
import {
  addDamage,
  type CheckRun,
  checkFiles,
  checkLayers,
  type EngineCheckReport,
  emptyReport,
  findFileProblem,
  findPlaceProblem,
  recordedFiles,
  recordedLayers,
} from "./contents.ts";

interface EngineCheckOptions {
  signal: AbortSignal;
  /** Called with what has been checked so far. */
  onProgress(done: Omit<EngineCheckReport, "damage">): void;
}

/**
 * Checks everything that the engine stores: hashes every uploaded file and reads every layer to its end. Builds may run
 * meanwhile. The first check of a layer records its fingerprint; later checks detect changes by it.
 */
export async function checkEngine(
  directory: string,
  options: EngineCheckOptions,
): Promise<EngineCheckReport> {
  try {
    return await withEngineDirectory(directory, (database, layout) => checkAll(database, layout, options));
  } catch (error) {
    const damage = damageOf(error);
    if (damage === undefined) throw error;
    const report = emptyReport();
    addDamage({ report }, { kind: "database", name: "engine.db", problem: damage.message });
    return report;
  }
}

/** Checks without reading contents that everything is where its record says, and of the recorded size. Takes milliseconds. */
export function checkQuickly(directory: string): Promise<EngineCheckReport> {
  return withEngineDirectory(directory, (database, layout) => {
    const report = emptyReport();
    const run = { database, layout, report };
    for (const file of recordedFiles(database)) {
      report.files++;
      const problem = findFileProblem(layout, file);
      if (problem !== undefined) addDamage(run, { kind: "file", name: file.sha256, problem });
    }
    for (const layer of recordedLayers(database)) {
      report.layers++;
      const problem = findPlaceProblem(run, layer, { countsUnknown: false });
      if (problem !== undefined) addDamage(run, { kind: "layer", name: layer.id.toString(36), problem });
    }
    checkImages(run);
    return report;
  });
}

async function checkAll(
  database: Database,
  layout: Layout,
  options: EngineCheckOptions,
): Promise<EngineCheckReport> {
  const report = emptyReport();
  const pace = createPace(options.signal, () => options.onProgress(report));
  const run: CheckRun = { database, layout, pace, report };
  checkDatabase(run);
  if (report.damage.length > 0) return report;
  await checkFiles(run);
  await checkLayers(run);
  checkImages(run);
  options.onProgress(report);
  return report;
}

function checkDatabase(run: CheckRun): void {
  const rows = run.database.query<{ integrity_check: string }, []>("PRAGMA integrity_check(10)").all();
  for (const { integrity_check: problem } of rows)
    if (problem !== "ok") addDamage(run, { kind: "database", name: "engine.db", problem });
}

/** Checks the records of images and tags, and adds to each damaged layer the images that are built on it. */
function checkImages(run: Omit<CheckRun, "pace">): void {
  const { database, report } = run;
  const layers = new Map(
    report.damage.flatMap((damage) =>
      damage.kind === "layer" ? [[Number.parseInt(damage.name, 36), damage]] : [],
    ),
  );
  const images = database
    .query<{ uuid: string; layer: number; config: string }, []>("SELECT uuid, layer, config FROM images")
    .all();
  const tags = database.query<{ tag: string }, [string]>(
    "SELECT tag FROM all_tags WHERE image = ? ORDER BY tag",
  );
  for (const { uuid, layer, config } of images) {
    report.images++;
    const chain = layerChain(database, layer);
    const found = chain.map((id) => layers.get(id)).filter((damage) => damage !== undefined);
    if (chain.length === 0 || parseObject(config) === undefined) {
      const problem = chain.length === 0 ? "its layer has no record" : "its record is damaged";
      found.push(addDamage(run, { kind: "image", name: uuid, problem }));
    }
    for (const damage of found) {
      damage.images.push(uuid);
      damage.tags.push(...tags.all(uuid).map(({ tag }) => tag));
    }
  }
  const lost = database
    .query<{ tag: string; image: string }, []>(
      "SELECT tag, image FROM all_tags WHERE image NOT IN (SELECT uuid FROM images)",
    )
    .all();
  for (const { tag, image } of lost)
    addDamage(run, { kind: "tag", name: tag, problem: `there is no image ${image}` }).tags.push(tag);
}
