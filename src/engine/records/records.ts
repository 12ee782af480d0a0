import type { Database } from "bun:sqlite";
import type { Layout } from "../layout.ts";
import type { UnreachableLayers } from "./unreachable-layers.ts";

/** An engine's database and its paths. */
export interface Records {
  database: Database;
  layout: Layout;
  unreachable?: UnreachableLayers;
}
