import { resolve } from "node:path";
import type { Clock } from "../../clock.ts";
import { buildDoors, buildStatuses } from "../../history/build-record.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import { durationCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { listParsers, listWords, oneOf } from "../command-line/option-values.ts";
import { type OptionsOf, readOptions } from "../command-line/options.ts";
import { printResult } from "../command-line/result.ts";
import { withHistory } from "./find-build.ts";

const lsDefinitions = {
  status: {
    type: "string",
    completes: buildStatuses,
    valueHint: "STATUS",
    description: `Only builds that are ${listWords(buildStatuses)}`,
  },
  name: { type: "string", valueHint: "TEXT", description: "Only builds whose name contains TEXT" },
  context: {
    type: "string",
    completes: "directory",
    valueHint: "CONTEXT",
    description: "Only builds of this context",
  },
  by: {
    type: "string",
    completes: buildDoors,
    valueHint: "COMMAND",
    description: `Only builds begun by ${listWords(buildDoors)}: docker is the plug-in, mcp a coding agent`,
  },
  ci: { type: "boolean", description: "Only builds of a pipeline, which sets CI" },
  since: {
    type: "string",
    valueHint: "WHEN",
    description: "Only builds begun since a date, or an age such as 12h",
  },
  until: { type: "string", valueHint: "WHEN", description: "Only builds begun until a date or an age" },
  limit: { type: "string", alias: "n", valueHint: "N", description: "The newest N (default: 50)" },
} as const satisfies ArgumentDefinitions;

export const ls = command({
  name: "ls",
  description: "List the builds of this machine, the newest first: also failed and interrupted ones.",
  args: lsDefinitions,
  run: printBuilds,
  examples: [
    ["history", "the last builds"],
    ["history ls --status failed --since 12h", "what failed last night"],
    ["history ls --context . -f json", "those of this directory, for other programs"],
  ],
  agentNote: "It reads bough's own state on this machine; the service is not asked.",
});

async function printBuilds({ values, ...surroundings }: Invocation): Promise<void> {
  const { runtime } = surroundings;
  const { limit = 50, ...options } = readOptions(values, lsDefinitions, lsParsers(runtime.clock));
  const isShown = filterOf(options, runtime.workingDirectory);
  const builds = await withHistory(runtime, (all) => all.filter(isShown));
  const shown = builds.slice(0, limit);
  printResult(surroundings, {
    id: shown.map(({ id }) => id),
    json: shown.map(toJson),
    table: () => ({
      header: ["BUILD", "STARTED", "STATUS", "TIME", "CACHED", "NAME", "BY", "ERROR"],
      rows: shown.map((build) => [
        { whole: build.id },
        { time: build.startedAt },
        build.status,
        durationCell(build.status === "running" ? null : build.seconds),
        build.layers === 0 ? null : `${build.cached}/${build.layers}`,
        build.name,
        `${build.door}${build.isCi ? ", CI" : ""}`,
        build.error,
      ]),
    }),
  });
}

const lsParsers = (clock: Pick<Clock, "now">) => ({
  ...listParsers(clock),
  status: (text: string) => oneOf(text, buildStatuses, "--status"),
  by: (text: string) => oneOf(text, buildDoors, "--by"),
});

function filterOf(
  {
    status,
    by,
    since,
    until,
    name = "",
    context,
    ci,
  }: OptionsOf<typeof lsDefinitions, ReturnType<typeof lsParsers>>,
  workingDirectory: string,
): (build: BuildSummary) => boolean {
  const places = context === undefined ? [] : [context, resolve(workingDirectory, context)];
  return (build) =>
    (status === undefined || build.status === status) &&
    (by === undefined || build.door === by) &&
    (ci !== true || build.isCi) &&
    (since === undefined || build.startedAt >= Date.parse(since)) &&
    (until === undefined || build.startedAt <= Date.parse(until)) &&
    build.name.toLowerCase().includes(name.toLowerCase()) &&
    (places.length === 0 || places.includes(build.context));
}

function toJson({ owner: _, startedAt, ...build }: BuildSummary): object {
  return { ...build, startedAt: new Date(startedAt).toISOString() };
}
