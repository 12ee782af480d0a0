import type { ArgsDef, CommandDef, CommandMeta } from "citty";
import { wrapWords } from "../../terminal/fit.ts";
import type { TrailingCommand } from "./arguments.ts";
import type { Command, UsualHelp } from "./command.ts";
import { type ArgumentDefinition, type ArgumentDefinitions, aliasesOf, shortOf } from "./definitions.ts";
import { globalDefinitions } from "./globals.ts";

/** The maximum width of a section's left column if not all of its rows fit into one line each. */
const maxLeft = 26;

/**
 * Returns the help text of one command. `path` is its full name, such as `bough images import`. Lines are wrapped at `columns`,
 * the width of the terminal, which is infinite for a pipe. citty's own usage text wraps no line, has no examples, and takes its
 * colors from the environment (`CI`, `TEST`), wherever it goes.
 */
export function renderHelp(command: Command, path: string, columns: number): string {
  const definitions = argumentsOf(command.definition);
  const places = Object.entries(definitions).filter(([, { type }]) => type === "positional");
  const options = Object.entries(definitions).filter(([, { type }]) => type !== "positional");
  return joinSections([
    wrapText(metaOf(command.definition).description ?? "", columns),
    wrapWords("Usage: ", usageOf(path, definitions, command.trailingCommand), { indent: 9, columns }),
    section(
      "Arguments",
      places.map(([name, definition]) => [placeName(name), describe(definition)]),
      columns,
    ),
    section(
      "Options",
      [...options.map(([name, definition]) => row(name, definition)), ["-h, --help", "Print help and exit"]],
      columns,
    ),
    wrapText(
      "Global options such as --url, --local, -f json and -q may be given before or after the command: see `bough help commands`.",
      columns,
    ),
    section(
      "Examples",
      command.examples.map(([line, meaning]) => [`bough ${line}`, meaning]),
      columns,
    ),
    command.agentNote === undefined
      ? undefined
      : `Note for coding agents:\n${wrapText(command.agentNote, columns, "  ")}`,
  ]);
}

/** How many examples fit the screen with the usual options. */
const briefExamples = 2;

/** Returns the help text of a command that fits a screen of 80 by 24: its usual options in groups, briefly. */
export function renderUsual(
  command: Command,
  path: string,
  { groups, agentNote }: UsualHelp,
  columns: number,
): string {
  const definitions = argumentsOf(command.definition);
  const places = Object.entries(definitions).filter(([, { type }]) => type === "positional");
  const rows = groups.map(({ options }) =>
    options.flatMap((name) => {
      const definition = definitions[name];
      return definition === undefined ? [] : [[row(name, definition)[0], briefly(definition)] as const];
    }),
  );
  const width = Math.max(...rows.flat().map(([left]) => left.length));
  return joinSections([
    [
      wrapText(metaOf(command.definition).description ?? "", columns),
      wrapWords(
        "Usage: ",
        [
          ...usageOf(path, Object.fromEntries(places), command.trailingCommand, "[OPTIONS]"),
          `(\`${path.replace("bough", "bough help")}\` lists all options)`,
        ],
        { indent: 9, columns },
      ),
    ].join("\n"),
    groups.map(({ title }, index) => renderRows(title, rows[index] ?? [], columns, width)).join("\n"),
    [
      renderRows(
        "Examples",
        command.examples.slice(0, briefExamples).map(([line, meaning]) => [`bough ${line}`, meaning]),
        columns,
      ),
      wrapText(`Note for coding agents: ${agentNote}`, columns),
    ].join("\n"),
  ]);
}

/** A description without its details: what precedes the first comma, colon, semicolon or bracket. */
function briefly({ description = "" }: ArgumentDefinition): string {
  return description.split(/\s*[(,:;]/)[0] ?? "";
}

export function renderGlobalOptions(columns: number): string {
  const rows = Object.entries(globalDefinitions).map(([name, definition]) => row(name, definition));
  return renderRows("Global options", rows, columns);
}

/** Returns the help text of a group of commands. */
export function renderGroup(
  path: string,
  summary: string,
  commands: readonly (readonly [string, string])[],
  columns: number,
): string {
  return joinSections([
    wrapText(`${summary}.`, columns),
    `Usage: ${path} COMMAND [arguments]`,
    section("Commands", commands, columns),
    `\`${path} COMMAND -h\` says more about each.`,
  ]);
}

export function argumentsOf(definition: CommandDef): ArgumentDefinitions {
  return (definition.args ?? {}) as ArgsDef;
}

function metaOf(definition: CommandDef): CommandMeta {
  return (definition.meta ?? {}) as CommandMeta;
}

/** Returns the parts of the usage line. A line break never divides a part. */
function usageOf(
  path: string,
  definitions: ArgumentDefinitions,
  trailingCommand: TrailingCommand | undefined,
  ...before: readonly string[]
): readonly string[] {
  const parts = Object.entries(definitions).map(([name, definition]) => {
    const repeated = definition.multiple === true ? " ..." : "";
    if (definition.type === "positional") {
      const place = `${placeName(name)}${repeated}`;
      return definition.required === true ? place : `[${place}]`;
    }
    return `[--${name}${valueHint(definition)}${repeated}]`;
  });
  const separator = trailingCommand === "behind-place" ? "[--]" : "--";
  return [
    path,
    ...before,
    ...parts,
    ...(trailingCommand === undefined || trailingCommand === "hidden"
      ? []
      : [`[${separator} COMMAND [ARGUMENT ...]]`]),
  ];
}

function placeName(name: string): string {
  return name.toUpperCase();
}

function row(name: string, definition: ArgumentDefinition): readonly [string, string] {
  const short = shortOf(definition) ?? aliasesOf(definition)[0];
  const names = `${short === undefined ? "" : `-${short}, `}--${name}`;
  return [`${names}${valueHint(definition)}`, describe(definition)];
}

/** Returns what stands behind an option's name. `[=LEVEL]` belongs to the same word. */
export function valueHint({ valueHint: hint }: ArgumentDefinition): string {
  return hint === undefined || hint.startsWith("[=") ? (hint ?? "") : ` ${hint}`;
}

function describe(definition: ArgumentDefinition): string {
  const repeat = definition.multiple === true && definition.type !== "positional" ? "; may be repeated" : "";
  return `${definition.description ?? ""}${repeat}`;
}

/** Returns a section of help: rows of two columns below a title. */
export function renderRows(
  title: string,
  rows: readonly (readonly [string, string])[],
  columns: number,
  width?: number,
): string {
  return section(title, rows, columns, width) ?? "";
}

function section(
  title: string,
  rows: readonly (readonly [string, string])[],
  columns: number,
  /** The width of the left column, so that sections are aligned. */
  given?: number,
): string | undefined {
  if (rows.length === 0) return undefined;
  const widest = Math.max(...rows.map(([left]) => left.length));
  const fits = rows.every(([, right]) => widest + right.length + 4 <= columns);
  const width = given ?? (fits ? widest : Math.min(widest, maxLeft));
  const shown = rows.map(([left, right]) => {
    const isApart = left.length > width;
    const beginning = isApart ? " ".repeat(width + 4) : `  ${left.padEnd(width)}  `;
    const text = wrapWords(beginning, right.split(" "), { indent: width + 4, columns });
    return isApart ? `  ${left}\n${text}` : text;
  });
  return `${title}:\n${shown.join("\n")}`;
}

/** Wraps each line. Continuation lines have twice the indent. */
export function wrapText(text: string, columns: number, indent = ""): string {
  return text
    .split("\n")
    .map((line) => wrapWords(indent, line.split(" "), { indent: indent.length * 2, columns }))
    .join("\n");
}

export function joinSections(sections: readonly (string | undefined)[]): string {
  return `${sections.filter((text) => text !== undefined).join("\n\n")}\n`;
}
