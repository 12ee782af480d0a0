import { resolve } from "node:path";
import { buildDoors, buildStatuses } from "../../history/build-record.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import { durationCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { listWords, oneOf, parseTime, positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { withHistory } from "./find-build.ts";

export const ls = command({
  name: "ls",
  description: "List the builds of this machine, the newest first: also failed and interrupted ones.",
  args: {
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
  },
  run: printBuilds,
  examples: [
    ["history", "the last builds"],
    ["history ls --status failed --since 12h", "what failed last night"],
    ["history ls --context . -f json", "those of this directory, for other programs"],
  ],
  agentNote: "It reads bough's own state on this machine; the service is not asked.",
});

async function printBuilds(invocation: Invocation): Promise<void> {
  const builds = await withHistory(invocation.runtime, (all) => all.filter(filterOf(invocation)));
  const limit = positiveInteger(invocation.values.text("limit"), "--limit") ?? 50;
  const shown = builds.slice(0, limit);
  printResult(invocation, {
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

function filterOf({ values, runtime }: Invocation): (build: BuildSummary) => boolean {
  const status = values.text("status");
  const door = values.text("by");
  const chosenStatus = status === undefined ? undefined : oneOf(status, buildStatuses, "--status");
  const chosenDoor = door === undefined ? undefined : oneOf(door, buildDoors, "--by");
  const since = parseTime(values.text("since"), "--since", runtime.clock);
  const until = parseTime(values.text("until"), "--until", runtime.clock);
  const name = values.text("name")?.toLowerCase() ?? "";
  const context = values.text("context");
  const places = context === undefined ? [] : [context, resolve(runtime.workingDirectory, context)];
  return (build) =>
    (chosenStatus === undefined || build.status === chosenStatus) &&
    (chosenDoor === undefined || build.door === chosenDoor) &&
    (!values.flag("ci") || build.isCi) &&
    (since === undefined || build.startedAt >= Date.parse(since)) &&
    (until === undefined || build.startedAt <= Date.parse(until)) &&
    build.name.toLowerCase().includes(name) &&
    (places.length === 0 || places.includes(build.context));
}

function toJson({ owner: _, startedAt, ...build }: BuildSummary): object {
  return { ...build, startedAt: new Date(startedAt).toISOString() };
}
