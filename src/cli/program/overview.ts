/** The help text of bough itself, which fits a screen of 80 by 24. `bough help commands` has the rest. */
import { wrapWords } from "../../terminal/fit.ts";
import type { CommandTable } from "../command-line/command.ts";
import { type ArgumentDefinition, shortOf } from "../command-line/definitions.ts";
import { globalDefinitions } from "../command-line/globals.ts";
import { joinSections, renderRows, wrapText } from "../command-line/help.ts";

const summary = "bough builds container images from Dockerfiles, and runs commands in images.";

const common = ["build", "run", "shell", "images", "inspect", "push", "rmi", "doctor"];

/** The other commands, whose names say enough beside these titles. */
const more: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["images", ["tag", "untag", "ls", "cat", "cp"]],
  ["sessions", ["use", "cd", "env", "session"]],
  ["operations", ["ps", "show", "logs", "kill", "wait"]],
  ["disk, cache", ["engine", "cache"]],
  ["services", ["auth", "serve"]],
  ["bough itself", ["agent", "skill", "mcp", "completion", "licenses", "release-key"]],
];

const usualOptions = ["session", "profile", "url", "local", "format", "log-level", "quiet"] as const;

const footer =
  "`bough COMMAND -h` says more, `bough help commands` describes all commands and options, `bough help` lists topics. Coding agents: read `bough agent` first.";

export function renderOverview(commands: CommandTable, columns: number): string {
  return joinSections([
    `${wrapText(summary, columns)}\nUsage: bough [OPTIONS] COMMAND [ARGUMENTS]`,
    [
      renderRows(
        "Common commands",
        common.map((name) => [name, commands[name]?.summary ?? ""]),
        columns,
      ),
      renderRows(
        "More commands",
        more.map(([title, names]) => [title, names.join(", ")]),
        columns,
      ),
      wrapWords("Options: ", [...usualOptions.map(describeOption), "..."], { indent: 2, columns }),
    ].join("\n"),
    wrapText(footer, columns),
  ]);
}

function describeOption(name: (typeof usualOptions)[number]): string {
  const definition: ArgumentDefinition = globalDefinitions[name];
  const letter = shortOf(definition);
  const hint = definition.valueHint === undefined ? "" : ` ${definition.valueHint}`;
  return `${letter === undefined ? `--${name}` : `-${letter}`}${hint},`;
}
