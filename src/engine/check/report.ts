import type { Database } from "bun:sqlite";
import type { Pace } from "../../pace.ts";
import type { Layout } from "../layout.ts";

/** A part of an engine's data that is damaged. */
export interface Damage {
  /** `blob`: a file of an imported layer, as downloaded; the unpacked layer itself may be intact. */
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

/** What a check of an engine needs, and the report that it adds to. */
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
export function add(
  { report }: Pick<CheckRun, "report">,
  { kind, name, problem }: Pick<Damage, "kind" | "name" | "problem">,
): Damage {
  const damage = { kind, name, problem, images: [], tags: [] };
  report.damage.push(damage);
  return damage;
}
