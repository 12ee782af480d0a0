import type { OptionShape } from "./tokens.ts";

/**
 * An option of another program that bough does not have: its names, and its value if it takes one, as that program's help prints
 * them. What comes of it, and why, or what to write instead.
 */
export type ForeignOption = readonly [
  usage: string,
  outcome: "ignored" | "refused",
  text: string,
  /** A value with which the option is ignored, although others are refused. */
  ignoredValue?: string,
];

type FoundOption = { outcome: "ignored" | "refused"; text: string };

export interface ForeignOptions {
  /** Their shapes, by their first names. */
  shapes: Readonly<Record<string, OptionShape>>;
  find(name: string, value: string | undefined): FoundOption | undefined;
}

export const noForeignOptions: ForeignOptions = { shapes: {}, find: () => undefined };

/** Names that appear in several tables have the meaning of the first. */
export function foreignOptions(...tables: (readonly ForeignOption[])[]): ForeignOptions {
  const rows = new Map<string, ForeignOption>();
  const shapes: Record<string, OptionShape> = {};
  for (const row of tables.flat()) {
    const { names, takesValue } = readUsage(row[0]);
    const [name = ""] = names;
    if (rows.has(name)) continue;
    rows.set(name, row);
    shapes[name] = { type: takesValue ? "string" : "boolean", synonyms: names };
  }
  return {
    shapes,
    find(name, value) {
      const [, outcome = "refused", text, ignoredValue] = rows.get(name) ?? [];
      if (text === undefined) return undefined;
      return { outcome: value !== undefined && value === ignoredValue ? "ignored" : outcome, text };
    },
  };
}

/** Reads `-m, --memory SIZE`. */
export function readUsage(usage: string): { names: string[]; takesValue: boolean } {
  const words = usage.split(/,? /);
  const names = words.filter((word) => word.startsWith("-"));
  return { names, takesValue: names.length < words.length };
}
