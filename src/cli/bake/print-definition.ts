/** `--list`: prints the targets or variables of the files as buildx does. */
import { usageError } from "../../errors.ts";
import { goJson } from "../../go/json.ts";
import { visibleLines } from "../../visible.ts";
import type { Surroundings } from "../command-line/command.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import type { BakeDefinition } from "./target.ts";

/** Prints targets or variables: `--list targets`, or `--list type=targets,format=json`. */
export function printList(
  { type, format }: List,
  definition: BakeDefinition,
  surroundings: Surroundings,
): void {
  const shown = type === "targets" ? targetList(definition) : variableList(definition);
  const { stdout } = surroundings.runtime;
  // As Go has it, no list is not an empty one.
  if (format === "json")
    stdout.write(`${goJson(shown.json.length === 0 && type === "targets" ? null : shown.json, 2)}\n`);
  else
    printResult(surroundings, {
      id: shown.id,
      json: shown.json,
      table: () => (stdout.isTerminal ? visibleLines(tabColumns(shown.rows)) : tabColumns(shown.rows)),
    });
}

interface List {
  type: "targets" | "variables";
  format: string;
}

interface Shown {
  id: string[];
  json: Record<string, unknown>[];
  rows: string[][];
}

/** Parses `--list`. */
export function parseList(given: string): List {
  const fields = new Map(
    given === "targets" || given === "variables"
      ? [["type", given]]
      : splitCsv(given).map((word): [string, string | undefined] => {
          const [key, value] = splitPair(word);
          return [key.trim().toLowerCase(), value];
        }),
  );
  const type = fields.get("type");
  const format = fields.get("format") ?? "table";
  const isKnown = fields.keys().every((key) => key === "type" || key === "format");
  if (isKnown && (type === "targets" || type === "variables") && (format === "table" || format === "json"))
    return { type, format };
  throw usageError(
    `--list takes targets or variables, not ${JSON.stringify(given)}`,
    "For programs: --list type=targets,format=json",
  );
}

function targetList({ targets, groups }: BakeDefinition): Shown {
  const all = [
    ...targets.map(({ name, fields: { description = "" } }) => ({ name, description, isGroup: false })),
    ...groups.map(({ name, targets: members, description }) => {
      const names = [...members].sort().join(", ");
      const shown = description && names ? `${description} (${names})` : description || names;
      return { name, description: shown, isGroup: true };
    }),
  ]
    // A leading underscore marks targets that exist only to be inherited.
    .filter(({ name }) => !name.startsWith("_"))
    .sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
  return {
    id: all.map(({ name }) => name),
    json: all.map(({ name, description, isGroup }) => ({
      name,
      ...(description !== "" && { description }),
      ...(isGroup && { group: true }),
    })),
    rows: [["TARGET", "DESCRIPTION"], ...all.map(({ name, description }) => [name, description])],
  };
}

function variableList({ variables }: BakeDefinition): Shown {
  return {
    id: variables.map(({ name }) => name),
    json: variables.map(({ name, description, type, value }) => ({
      name,
      ...(description && { description }),
      ...(type && { type }),
      ...(value !== null && { value }),
    })),
    rows: [
      ["VARIABLE", "TYPE", "VALUE", "DESCRIPTION"],
      ...variables.map(({ name, type = "", value, description = "" }) => [
        name,
        type,
        value ?? "<null>",
        description,
      ]),
    ],
  };
}

/** Returns lines in columns that tabs separate, as Go's tabwriter writes them for buildx: each column as wide as tabs make it. */
function tabColumns(rows: readonly (readonly string[])[]): string {
  // A line break in a cell begins a line of its own.
  const lines = rows.flatMap((row) =>
    row
      .join("\t")
      .split("\n")
      .map((line) => line.split("\t")),
  );
  const widths = lines.map((): number[] => []);
  setWidths(lines, widths, { from: 0, to: lines.length, column: 0 });
  return lines
    .map((cells, line) => {
      const padded = cells.slice(0, -1).map((cell, column) => {
        const width = widths[line]?.[column] ?? 0;
        return cell + "\t".repeat(Math.ceil((width - lengthOf(cell)) / tabSize));
      });
      return `${padded.join("")}${cells.at(-1) ?? ""}\n`;
    })
    .join("");
}

const tabSize = 8;

/** A column ends where a line has no cell in it that another one follows. */
function setWidths(
  lines: readonly (readonly string[])[],
  widths: readonly number[][],
  { from, to, column }: { from: number; to: number; column: number },
): void {
  for (let start = from; start < to; start++) {
    let end = start;
    while (end < to && (lines[end]?.length ?? 0) > column + 1) end += 1;
    if (end === start) continue;
    const longest = Math.max(...lines.slice(start, end).map((cells) => lengthOf(cells[column] ?? "")));
    const width = Math.ceil((longest + 1) / tabSize) * tabSize;
    for (const line of widths.slice(start, end)) line[column] = width;
    setWidths(lines, widths, { from: start, to: end, column: column + 1 });
    start = end - 1;
  }
}

function lengthOf(text: string): number {
  return [...text].length;
}
