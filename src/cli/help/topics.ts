/** The topics of the manual, each a Markdown file. Only `help` loads them, since the texts are long. */

import { type BoughError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { fitWidths } from "../../terminal/fit.ts";
import type { CommandTable } from "../command-line/command.ts";
import { renderGlobalOptions, renderRows, wrapText } from "../command-line/help.ts";
import type { Output } from "../process/runtime.ts";
import agents from "./topics/agents.md" with { type: "text" };
import builds from "./topics/builds.md" with { type: "text" };
import buildx from "./topics/buildx.md" with { type: "text" };
import changelog from "./topics/changelog.md" with { type: "text" };
import checks from "./topics/checks.md" with { type: "text" };
import ci from "./topics/ci.md" with { type: "text" };
import commands from "./topics/commands.md" with { type: "text" };
import contexts from "./topics/contexts.md" with { type: "text" };
import contributing from "./topics/contributing.md" with { type: "text" };
import disk from "./topics/disk.md" with { type: "text" };
import docker from "./topics/docker.md" with { type: "text" };
import dockerfile from "./topics/dockerfile.md" with { type: "text" };
import environment from "./topics/environment.md" with { type: "text" };
import exporting from "./topics/export.md" with { type: "text" };
import install from "./topics/install.md" with { type: "text" };
import json from "./topics/json.md" with { type: "text" };
import platforms from "./topics/platforms.md" with { type: "text" };
import progress from "./topics/progress.md" with { type: "text" };
import sandbox from "./topics/sandbox.md" with { type: "text" };
import sessions from "./topics/sessions.md" with { type: "text" };
import sharing from "./topics/sharing.md" with { type: "text" };

export interface Topic {
  summary: string;
  markdown: string;
  /** Returns further text for the terminal. */
  appendix?: (columns: number) => string;
}

/** The topics in the order in which `bough help` lists them. No topic has the name of a command. */
export const topics: Readonly<Record<string, Topic>> = {
  builds: { summary: "A build is slow, its image large, a step not cached", markdown: builds },
  docker: { summary: "Coming from docker: its commands, and what to write here", markdown: docker },
  buildx: { summary: "Every flag of docker buildx build, and what it does here", markdown: buildx },
  dockerfile: { summary: "What each instruction does, with and without --docker", markdown: dockerfile },
  contexts: {
    summary: "Contexts from elsewhere, --build-context; bake and compose files",
    markdown: contexts,
  },
  checks: {
    summary: "Look for mistakes, lock inputs, say why a step is not cached",
    markdown: checks,
  },
  platforms: { summary: "Images for other platforms, and for several at once", markdown: platforms },
  progress: { summary: "What a build shows while it goes on, and what took long", markdown: progress },
  sessions: { summary: "Work in a built image: run, shell, branches, rollback", markdown: sessions },
  export: {
    summary: "Files, registries, docker load; provenance, packages, signatures",
    markdown: exporting,
  },
  sharing: { summary: "A layer cache that machines share", markdown: sharing },
  disk: { summary: "What uses space, and how to free it", markdown: disk },
  ci: { summary: "In pipelines and in containers, without a daemon", markdown: ci },
  agents: { summary: "Coding agents: their manual, and tools over MCP", markdown: agents },
  sandbox: { summary: "What a RUN can reach: files, network, limits", markdown: sandbox },
  environment: { summary: "Which service is used, and every environment variable", markdown: environment },
  json: { summary: "Exit codes, events of a build, keys of -f json", markdown: json },
  commands: {
    summary: "All commands in one table, and the global options",
    markdown: commands,
    appendix: renderGlobalOptions,
  },
  install: { summary: "Releases, what the engine needs, containers", markdown: install },
  contributing: { summary: "Working on bough", markdown: contributing },
  changelog: { summary: "What is new", markdown: changelog },
};

/** The width of a topic in a pipe or a file, and the maximum on a terminal: longer lines are hard to read. */
const pipeColumns = 80;
const maxColumns = 120;

export function showTopics(output: Output): void {
  const rows = Object.entries(topics).map(([name, { summary }]) => [name, summary] as const);
  output.writeAlone((columns) =>
    [
      wrapText("`bough help TOPIC` shows a topic, `bough COMMAND -h` a command, `bough -h` all.", columns),
      `${renderRows("Topics", rows, columns)}\n`,
    ].join("\n"),
  );
}

/** Shows a topic. Throws a BoughError of kind `usage` if there is none of that name. */
export function showTopic(name: string, output: Output, commands: CommandTable): void {
  const topic = Object.hasOwn(topics, name) ? topics[name] : undefined;
  if (topic === undefined) throw unknownTopic(name, commands);
  const { hasColor } = output;
  output.writeAlone((columns) => {
    const width = columns === Number.POSITIVE_INFINITY ? pipeColumns : Math.min(columns, maxColumns);
    const text = renderMarkdown(topic.markdown, { columns: width, hasColor });
    return topic.appendix === undefined ? text : `${text}\n${topic.appendix(width)}\n`;
  });
}

function unknownTopic(name: string, commands: CommandTable): BoughError {
  const guess = nearest(name, [...Object.keys(commands), ...Object.keys(topics)]);
  return usageError(
    `there is neither a command nor a topic ${JSON.stringify(name)}`,
    guess === undefined
      ? "`bough help` lists the topics, `bough -h` the commands."
      : `Did you mean ${guess}?`,
  );
}

/** The width and the colours for which a topic is rendered. */
interface RenderOptions {
  columns: number;
  hasColor: boolean;
}

/** The characters that end a cell and a row until the table is laid out. They do not occur in texts. */
const cellEnd = "\u001f";
const rowEnd = "\u001e";
const gap = 2;
const codeIndent = "    ";

function renderMarkdown(markdown: string, { columns, hasColor }: RenderOptions): string {
  const paint = (codes: readonly [number, number], text: string) =>
    hasColor ? `\u001b[${codes[0]}m${text}\u001b[${codes[1]}m` : text;
  const bold = (text: string) => paint([1, 22], text);
  const rendered = Bun.markdown.render(markdown, {
    heading: (text, { level }) => `${bold(level === 1 ? text.toUpperCase() : text)}\n\n`,
    paragraph: (text) => `${wrap(text, columns)}\n\n`,
    list: (items) => `${items.trimEnd()}\n\n`,
    listItem: (text, { ordered, index, start }) => {
      const marker = ordered ? `${(start ?? 1) + index}. ` : "- ";
      return `${indentFollowingLines(marker, wrap(text, columns - marker.length))}\n`;
    },
    code: (text) => `${layOutCode(text.trimEnd(), columns)}\n\n`,
    blockquote: (text) => `${indentFollowingLines("  ", text.trimEnd())}\n\n`,
    hr: () => `${"-".repeat(Math.min(columns, 40))}\n\n`,
    html: () => "",
    th: (text) => text + cellEnd,
    td: (text) => text + cellEnd,
    tr: (cells) => cells + rowEnd,
    table: (rows) => `${layOutTable(rows, columns, bold)}\n\n`,
    strong: bold,
    emphasis: (text) => paint([4, 24], text),
    codespan: (text) => (hasColor ? paint([36, 39], text) : `\`${text}\``),
    link: (text, { href }) => describeLink(text, href),
    image: () => "",
  });
  return `${rendered.replace(/[ \t]+$/gm, "").trimEnd()}\n`;
}

/** Returns the text of a link. A link to another topic gets the command that shows it; a link within the topic is only text. */
export function describeLink(text: string, href: string): string {
  const [, topic] = /^(?:[\w./]*\/)?([a-z]+)\.md(?:#.*)?$/.exec(href) ?? [];
  if (topic !== undefined) {
    const line = `bough help ${topic}`;
    return Bun.stripANSI(text).includes(line) ? text : `${text} (${line})`;
  }
  return href.startsWith("#") || text === href ? text : `${text} (${href})`;
}

/**
 * Indents code. If a line with a comment at its end is too long, all such comments of the code are moved above their lines, with the
 * same indentation: commands stay whole, and in YAML comments stay in their blocks.
 */
function layOutCode(text: string, columns: number): string {
  const width = columns - codeIndent.length;
  const lines = text.split("\n").map((line) => {
    const [, indent = "", command = line, comment] = /^( *)(.*\S) +# (.*)$/.exec(line) ?? [];
    return { line, command: indent + command, indent, comment };
  });
  const areAbove = lines.some(({ line, comment }) => comment !== undefined && line.length > width);
  return lines
    .flatMap(({ line, command, indent, comment }) =>
      areAbove && comment !== undefined
        ? [
            ...wrap(comment, width - indent.length - 2)
              .split("\n")
              .map((part) => `${indent}# ${part}`),
            command,
          ]
        : line,
    )
    .map((line) => (line === "" ? "" : codeIndent + line))
    .join("\n");
}

function wrap(text: string, columns: number): string {
  return Bun.wrapAnsi(text.replaceAll("\n", " ").trim(), Math.max(columns, 1), { hard: false, trim: true });
}

function indentFollowingLines(beginning: string, text: string): string {
  return beginning + text.replaceAll("\n", `\n${" ".repeat(beginning.length)}`);
}

/** Lays out a table with wrapped cells. A header row without any text is left out. */
function layOutTable(text: string, columns: number, bold: (text: string) => string): string {
  const rows = text
    .split(rowEnd)
    .slice(0, -1)
    .map((row) => row.split(cellEnd).slice(0, -1));
  const [header = [], ...body] = rows;
  const widthsOf = (column: number) => rows.map((row) => Bun.stringWidth(row[column] ?? ""));
  const natural = header.map((_, column) => Math.max(...widthsOf(column)));
  const titles = header.map((title) => Bun.stripANSI(title));
  const widths = fitWidths(natural, { header: titles, isId: titles.map(() => false) }, columns);
  const lines = (row: readonly string[]) => {
    const cells = row.map((cell, column) => wrap(cell, widths[column] ?? columns).split("\n"));
    const height = Math.max(...cells.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, column) => padTo(cell[line] ?? "", widths[column] ?? 0))
        .join(" ".repeat(gap))
        .trimEnd(),
    ).join("\n");
  };
  const isTall = body.some((row) => lines(row).includes("\n"));
  const shown = body.map(lines).join(isTall ? "\n\n" : "\n");
  if (titles.every((title) => title === "")) return shown;
  return `${lines(header.map((title) => bold(title.toUpperCase())))}\n${shown}`;
}

function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - Bun.stringWidth(text)));
}
