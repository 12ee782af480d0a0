import { CommandLineError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { type ArgumentDefinitions, isUndefined } from "./definitions.ts";
import type { OptionShape, Token } from "./tokens.ts";

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

/** Throws one error that names all options that the command does not have, in their order. */
export function refuseUnknown(
  tokens: readonly Token[],
  definitions: ArgumentDefinitions,
  command: string,
  foreign: ForeignOptions,
): void {
  const hints = new Map<string, string>();
  for (const token of tokens) {
    if (!isUndefined(token, definitions)) continue;
    const known = foreign.find(token.name, token.value);
    if (known?.outcome === "ignored") continue;
    hints.set(token.rawName, known?.text ?? suggestion(token.rawName, definitions, command));
  }
  const names = [...hints.keys()];
  if (names.length === 0) return;
  throw new CommandLineError(
    `${command}: unknown option${names.length === 1 ? "" : "s"} ${names.join(", ")}`,
    names.length === 1
      ? [...hints.values()].join()
      : [...hints].map(([name, hint]) => `${name}: ${hint}`).join("\n"),
  );
}

function suggestion(given: string, definitions: ArgumentDefinitions, command: string): string {
  if (command === "bough" && /^-v$/i.test(given)) return "--version prints the version.";
  const names = Object.entries(definitions).flatMap(([name, { type }]) =>
    type === "positional" ? [] : [`--${name}`],
  );
  const name = nearest(given, names);
  if (name !== undefined) return `Did you mean ${name}?`;
  return command === "bough"
    ? "A command's own options go after its name."
    : `\`${command} -h\` lists the options.`;
}
