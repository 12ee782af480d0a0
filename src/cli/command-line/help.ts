import type { ArgsDef, CommandDef, CommandMeta } from "citty";
import {
  type ArgumentDefinition,
  type ArgumentDefinitions,
  aliasesOf,
  shortOf,
  type TakesRest,
} from "./arguments.ts";
import type { Command } from "./command.ts";
import { globalDefinitions } from "./globals.ts";

/** The help text of one command. `path`: how it is called, such as `bough images import`. */
export function renderHelp(command: Command, path: string): string {
  const definitions = argumentsOf(command.definition);
  const places = Object.entries(definitions).filter(([, { type }]) => type === "positional");
  const options = Object.entries(definitions).filter(([, { type }]) => type !== "positional");
  return joinSections([
    metaOf(command.definition).description,
    `Usage: ${usageOf(path, definitions, command.takesRest)}`,
    section(
      "Arguments",
      places.map(([name, definition]) => [placeName(name), describe(definition)]),
    ),
    section("Options", [
      ...options.map(([name, definition]) => row(name, definition)),
      ["-h, --help", "Print help and exit"],
    ]),
    "Global options such as --url, --local, -f json and -q may stand before or after the command: see `bough -h`.",
    section(
      "Examples",
      command.examples.map(([line, meaning]) => [`bough ${line}`, meaning]),
    ),
    command.agentNote === undefined ? undefined : `Note for coding agents:\n${indent(command.agentNote)}`,
  ]);
}

/** The help text of bough itself: its commands and the global options. */
export function renderOverview(
  summary: string,
  commands: readonly (readonly [string, string])[],
  footer: string,
): string {
  return joinSections([
    summary,
    "Usage: bough [global options] COMMAND [arguments]",
    section("Commands", commands),
    section(
      "Global options",
      Object.entries(globalDefinitions).map(([name, definition]) => row(name, definition)),
    ),
    footer,
  ]);
}

/** The help text of a command that only groups others. */
export function renderGroup(
  path: string,
  summary: string,
  commands: readonly (readonly [string, string])[],
): string {
  return joinSections([
    `${summary}.`,
    `Usage: ${path} COMMAND [arguments]`,
    section("Commands", commands),
    `\`${path} COMMAND -h\` says more about each.`,
  ]);
}

export function argumentsOf(definition: CommandDef): ArgumentDefinitions {
  return (definition.args ?? {}) as ArgsDef;
}

function metaOf(definition: CommandDef): CommandMeta {
  return (definition.meta ?? {}) as CommandMeta;
}

function usageOf(path: string, definitions: ArgumentDefinitions, takesRest: TakesRest | undefined): string {
  const parts = Object.entries(definitions).map(([name, definition]) => {
    const repeated = definition.multiple === true ? " ..." : "";
    if (definition.type === "positional") {
      const place = `${placeName(name)}${repeated}`;
      return definition.required === true ? place : `[${place}]`;
    }
    return `[--${name}${definition.valueHint === undefined ? "" : ` ${definition.valueHint}`}${repeated}]`;
  });
  const separator = takesRest === "behind-place" ? "[--]" : "--";
  return [
    path,
    ...parts,
    ...(takesRest === undefined || takesRest === "hidden" ? [] : [`[${separator} COMMAND [ARGUMENT ...]]`]),
  ].join(" ");
}

function placeName(name: string): string {
  return name.toUpperCase();
}

function row(name: string, definition: ArgumentDefinition): readonly [string, string] {
  const short = shortOf(definition) ?? aliasesOf(definition)[0];
  const value = definition.valueHint === undefined ? "" : ` ${definition.valueHint}`;
  return [`${short === undefined ? "" : `-${short}, `}--${name}${value}`, describe(definition)];
}

function describe(definition: ArgumentDefinition): string {
  const repeat = definition.multiple === true && definition.type !== "positional" ? "; may be repeated" : "";
  return `${definition.description ?? ""}${repeat}`;
}

function section(title: string, rows: readonly (readonly [string, string])[]): string | undefined {
  if (rows.length === 0) return undefined;
  const width = Math.max(...rows.map(([left]) => left.length));
  return `${title}:\n${rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd()).join("\n")}`;
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}

function joinSections(sections: readonly (string | undefined)[]): string {
  return `${sections.filter((text) => text !== undefined).join("\n\n")}\n`;
}
