import type { Database } from "bun:sqlite";
import type { Layout } from "../layout.ts";
import type { UnreachableLayers } from "./unreachable-layers.ts";

/** An engine's database and its paths. */
export interface Records {
  database: Database;
  layout: Layout;
  unreachable?: UnreachableLayers;
}

/** Parses a column's JSON object; `undefined` if it is damaged or was edited. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
