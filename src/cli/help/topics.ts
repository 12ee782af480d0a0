/** The manual: a Markdown source each topic. Loaded only by `help`, since these texts are long. */

import { type BoughError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import type { CommandTable } from "../command-line/command.ts";
import { renderGlobalOptions, renderRows, wrapText } from "../command-line/help.ts";
import type { Output } from "../process/runtime.ts";
import { renderMarkdown } from "./render-markdown.ts";
import agents from "./topics/agents.md" with { type: "text" };
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
import layers from "./topics/layers.md" with { type: "text" };
import platforms from "./topics/platforms.md" with { type: "text" };
import progress from "./topics/progress.md" with { type: "text" };
import sandbox from "./topics/sandbox.md" with { type: "text" };
import sessions from "./topics/sessions.md" with { type: "text" };
import sharing from "./topics/sharing.md" with { type: "text" };

export interface Topic {
  summary: string;
  markdown: string;
  /** What follows the text in the terminal. */
  appendix?: (columns: number) => string;
}

/** In the order in which `bough help` lists them. No topic has the name of a command. */
export const topics: Readonly<Record<string, Topic>> = {
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
  layers: { summary: "Why an image is so large", markdown: layers },
  export: { summary: "Files, registries, docker load; provenance and packages", markdown: exporting },
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

/** The width of a topic in a pipe or a file, and the greatest on a terminal: longer lines are hard to read. */
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
