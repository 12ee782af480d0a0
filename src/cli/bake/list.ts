/** `--list`: what the files define, printed as buildx does. */
import { usageError } from "../../errors.ts";
import { goJson } from "../../go/json.ts";
import { visibleLines } from "../../visible.ts";
import type { Invocation } from "../command-line/command.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { tabbed } from "./tabbed.ts";
import type { Definition } from "./target.ts";

/** Prints targets or variables: `--list targets`, or `--list type=targets,format=json`. */
export function printList(given: string, definition: Definition, invocation: Invocation): void {
  const { type, format } = readList(given);
  const shown = type === "targets" ? targetList(definition) : variableList(definition);
  const { stdout } = invocation.runtime;
  // As Go has it, no list is not an empty one.
  if (format === "json")
    stdout.write(`${goJson(shown.json.length === 0 && type === "targets" ? null : shown.json, 2)}\n`);
  else
    printResult(invocation, {
      id: shown.id,
      json: shown.json,
      table: () => (stdout.isTerminal ? visibleLines(tabbed(shown.rows)) : tabbed(shown.rows)),
    });
}

interface Shown {
  id: string[];
  json: Record<string, unknown>[];
  rows: string[][];
}

function readList(given: string): { type: "targets" | "variables"; format: string } {
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

function targetList({ targets, groups }: Definition): Shown {
  const all = [
    ...targets.map(({ name, fields: { description = "" } }) => ({ name, description, isGroup: false })),
    ...groups.map(({ name, targets: members, description }) => {
      const names = [...members].sort().join(", ");
      const shown = description && names ? `${description} (${names})` : description || names;
      return { name, description: shown, isGroup: true };
    }),
  ]
    // A leading underscore marks what only others inherit.
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

function variableList({ variables }: Definition): Shown {
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
