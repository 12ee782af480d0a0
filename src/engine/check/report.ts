import type { Database } from "bun:sqlite";
import type { Pace } from "../../pace.ts";
import type { Layout } from "../layout.ts";

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

/** What a look at an engine has at hand, and the report that it adds to. */
export interface Look {
  database: Database;
  layout: Layout;
  pace: Pace;
  report: EngineCheckReport;
}

export function add({ report }: Pick<Look, "report">, damage: Omit<Damage, "images" | "tags">): void {
  report.damage.push({ ...damage, images: [], tags: [] });
}
