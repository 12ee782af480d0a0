/** The man pages: one of each command, from its own definition, and one of each topic of the manual. */
import type { CommandMeta } from "citty";
import type { Command, CommandTable } from "../../src/cli/command-line/command.ts";
import { type ArgumentDefinition, aliasesOf } from "../../src/cli/command-line/definitions.ts";
import { globalDefinitions } from "../../src/cli/command-line/globals.ts";
import { argumentsOf, valueHint } from "../../src/cli/command-line/help.ts";
import { topics } from "../../src/cli/help/topics.ts";
import { commands } from "../../src/cli/program/commands.ts";
import { version } from "../../src/version.ts";
import { escapeRoff, lines, renderRoff } from "./roff.ts";

export interface ManPage {
  /** Such as `bough-build.1`. */
  name: string;
  text: string;
}

export async function manPages(): Promise<ManPage[]> {
  const ofTopics = Object.entries(topics).map(([name, { summary, markdown }]) =>
    page(`bough-${name}`, 7, summary, [renderDescription(markdown)]),
  );
  return [overview(), ...(await commandPages(commands, ["bough"])), ...ofTopics];
}

function overview(): ManPage {
  const description =
    "bough builds images from Dockerfiles, and runs commands in images, on an image service or on its own embedded engine.";
  return page("bough", 1, "build container images from Dockerfiles", [
    section("Synopsis", "\\fBbough\\fP [\\fIglobal options\\fP] \\fICOMMAND\\fP [\\fIarguments\\fP]"),
    section("Description", escapeRoff(description)),
    section("Commands", tagged(Object.entries(commands).map(([name, { summary }]) => [name, summary]))),
    section(
      "Global options",
      tagged(Object.entries(globalDefinitions).map(([name, one]) => option(name, one))),
    ),
    section(
      "Topics",
      tagged(Object.entries(topics).map(([name, { summary }]) => [`bough-${name}(7)`, summary])),
    ),
  ]);
}

async function commandPages(table: CommandTable, path: readonly string[]): Promise<ManPage[]> {
  const pages = await Promise.all(
    Object.entries(table).map(async ([name, entry]) => {
      const words = [...path, name];
      if ("load" in entry) return [commandPage(await entry.load(), entry.summary, words)];
      const rows = Object.entries(entry.commands).map(([below, { summary }]) => [below, summary] as const);
      const group = page(words.join("-"), 1, entry.summary, [
        section("Synopsis", `\\fB${escapeRoff(words.join(" "))}\\fP \\fICOMMAND\\fP [\\fIarguments\\fP]`),
        section("Commands", tagged(rows)),
        seeAlso(),
      ]);
      return [group, ...(await commandPages(entry.commands, words))];
    }),
  );
  return pages.flat();
}

function commandPage(command: Command, summary: string, words: readonly string[]): ManPage {
  const definitions = Object.entries(argumentsOf(command.definition));
  const places = definitions.filter(([, { type }]) => type === "positional");
  const options = definitions.filter(([, { type }]) => type !== "positional");
  const { description = "" } = (command.definition.meta ?? {}) as CommandMeta;
  const synopsis = [
    `\\fB${escapeRoff(words.join(" "))}\\fP [\\fIoptions\\fP]`,
    ...places.map(([name, one]) => {
      const place = `\\fI${name.toUpperCase()}\\fP${one.multiple === true ? " ..." : ""}`;
      return one.required === true ? place : `[${place}]`;
    }),
    ...(command.trailingCommand === undefined || command.trailingCommand === "hidden"
      ? []
      : ["[[\\-\\-] \\fICOMMAND\\fP ...]"]),
  ].join(" ");
  return page(words.join("-"), 1, summary, [
    section("Synopsis", synopsis),
    section("Description", lines(escapeRoff(description))),
    section("Arguments", tagged(places.map(([name, one]) => [name.toUpperCase(), describe(one)]))),
    section("Options", tagged(options.map(([name, one]) => option(name, one)))),
    section("Examples", tagged(command.examples.map(([line, meaning]) => [`bough ${line}`, meaning]))),
    section(
      "Notes for coding agents",
      lines(escapeRoff(command.agentNote ?? "")).replaceAll("\n", "\n.br\n"),
    ),
    seeAlso(),
  ]);
}

function renderDescription(markdown: string): string {
  const body = renderRoff(markdown);
  return body.startsWith(".SH") ? body : `.SH DESCRIPTION\n${body}`;
}

function page(name: string, number: number, summary: string, sections: readonly string[]): ManPage {
  const head = `.TH ${name.toUpperCase().replaceAll("-", "\\-")} ${number} "" "bough ${version}" "bough"`;
  const short = `.SH NAME\n${escapeRoff(name)} \\- ${escapeRoff(summary)}`;
  return {
    name: `${name}.${number}`,
    text: [head, short, ...sections.filter((text) => text !== "")]
      .map((text) => `${text.trimEnd()}\n`)
      .join(""),
  };
}

function section(title: string, text: string): string {
  return text === "" ? "" : `.SH ${title.toUpperCase()}\n${text}\n`;
}

function seeAlso(): string {
  return section("See also", "\\fBbough\\fP(1)");
}

function tagged(rows: readonly (readonly [string, string])[]): string {
  return rows
    .map(([left, right]) => `.TP\n\\fB${escapeRoff(left)}\\fP\n${lines(escapeRoff(right))}`)
    .join("\n");
}

function option(name: string, definition: ArgumentDefinition): readonly [string, string] {
  const short = aliasesOf(definition)[0];
  const value = valueHint(definition);
  return [`${short === undefined ? "" : `-${short}, `}--${name}${value}`, describe(definition)];
}

function describe({ description = "", multiple, type }: ArgumentDefinition): string {
  return `${description}${multiple === true && type !== "positional" ? "; may be repeated" : ""}`;
}
