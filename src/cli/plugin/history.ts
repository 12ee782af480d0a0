/** `docker buildx history`: bough's history of builds, in the form of buildx. */
import { CommandLineError, usageError } from "../../errors.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import { buildRefOf, formatBuildRef } from "../builds/metadata/build-ref.ts";
import { parseArguments } from "../command-line/arguments.ts";
import { removeBuildRefs } from "../history/buildx-refs.ts";
import { requireRecord, withHistory } from "../history/find-build.ts";
import type { Runtime } from "../process/runtime.ts";
import { formatRows } from "./format.ts";
import { readFilters } from "./history-filters.ts";
import {
  ageAsInDocker,
  describeRecord,
  formatRecord,
  nameAsInDocker,
  renderLog,
  renderRecord,
  secondsAsInDocker,
  statusAsInDocker,
} from "./history-record.ts";
import { findReferencedBuild, referenceArgument, requireReferencedBuild } from "./history-references.ts";
import { commandOptions, type SubcommandCall } from "./subcommand.ts";

type HistoryCommand = (words: readonly string[], call: SubcommandCall) => Promise<number>;

export const historyCommands: Readonly<Record<string, HistoryCommand>> = {
  ...{ inspect, logs, ls, rm },
  export: async (words, call) => (await import("./history-export.ts")).exportRecords(words, call),
};

/** Lists builds, the newest first. */
async function ls(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(
    words,
    {
      ...{ ...commandOptions, filter: { type: "string", multiple: true }, format: { type: "string" } },
      ...{ local: { type: "boolean" }, "no-trunc": { type: "boolean" } },
    },
    name,
  );
  const isShown = readFilters(values.list("filter"), runtime.clock);
  const isHere = (build: BuildSummary) => !values.flag("local") || build.context === runtime.workingDirectory;
  const builds = await withHistory(runtime, (all) => all.filter((build) => isShown(build) && isHere(build)));
  const format = values.text("format") ?? "table";
  runtime.stdout.write(
    format === "json"
      ? builds.map((build) => `${JSON.stringify(jsonOf(build, runtime))}\n`).join("")
      : formatRows(
          format === "table" ? defaultTable : format,
          headers,
          builds.map((build) => ({ plain: rowOf(build, runtime.clock.now()), inTable: {} })),
          "*history.lsContext",
        ),
  );
  return 0;
}

const defaultTable = "table {{.Ref}}\t{{.Name}}\t{{.Status}}\t{{.CreatedAt}}\t{{.Duration}}";

const headers = {
  ...{ Ref: "BUILD ID", Name: "NAME", Status: "STATUS", CreatedAt: "CREATED AT", Duration: "DURATION" },
};

function rowOf(build: BuildSummary, now: number): Record<string, string> {
  return {
    Ref: build.id,
    Name: nameAsInDocker(build),
    Status: statusAsInDocker(build.status),
    CreatedAt: ageAsInDocker(now - build.startedAt),
    Duration: build.status === "running" ? "" : secondsAsInDocker(build.seconds),
  };
}

function jsonOf(build: BuildSummary, runtime: Runtime): object {
  const { id, startedAt, seconds, status, layers, cached } = build;
  const time = (milliseconds: number) => new Date(milliseconds).toISOString();
  return {
    cached_steps: cached,
    ...(status !== "running" && { completed_at: time(startedAt + seconds * 1000) }),
    completed_steps: layers,
    created_at: time(startedAt),
    name: nameAsInDocker(build),
    ref: formatBuildRef(buildRefOf(id, runtime)),
    status: statusAsInDocker(status),
    total_steps: layers,
  };
}

async function inspect(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  if (words[0] === "attachment")
    throw usageError(
      "docker buildx history inspect attachment: bough keeps attestations with the image that was written",
    );
  const values = parseArguments(
    words,
    { ...commandOptions, ...referenceArgument, format: { type: "string" } },
    name,
  );
  const format = values.text("format") ?? "pretty";
  const { record, log } = await withHistory(runtime, (builds, history) => {
    const record = requireRecord(
      requireReferencedBuild(singleReference(values.positionals), builds),
      history,
    );
    const failed = record.steps.find(({ outcome }) => outcome === "failed");
    return { record, log: failed && history.output(record.id, failed.step) };
  });
  runtime.stdout.write(
    format === "pretty"
      ? renderRecord(record, log)
      : format === "json"
        ? `${JSON.stringify(describeRecord(record), undefined, 2)}\n`
        : formatRecord(record, format),
  );
  return 0;
}

async function logs(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(
    words,
    { ...commandOptions, ...referenceArgument, progress: { type: "string" } },
    name,
  );
  const progress = values.text("progress") ?? "plain";
  if (progress === "rawjson")
    throw usageError("--progress rawjson: the history has the output of a build, not its events");
  if (!["plain", "tty", "auto"].includes(progress))
    throw new CommandLineError(`invalid progress mode ${progress}`);
  const text = await withHistory(runtime, (builds, history) => {
    const record = requireRecord(
      requireReferencedBuild(singleReference(values.positionals), builds),
      history,
    );
    return renderLog(record, (step) => history.output(record.id, step));
  });
  runtime.stderr.write(text);
  return 0;
}

async function rm(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(
    words,
    { ...commandOptions, ...referenceArgument, all: { type: "boolean" } },
    name,
  );
  const all = values.flag("all");
  if (values.positionals.length === 0 && !all) throw usageError("rm requires at least one argument");
  if (values.positionals.length > 0 && all)
    throw usageError("rm requires either --all or at least one argument");
  const removed = await withHistory(runtime, (builds, history) => {
    // As in buildx, a missing build is not an error.
    const chosen = all ? builds : values.positionals.flatMap((ref) => findReferencedBuild(ref, builds) ?? []);
    const ids = chosen.map(({ id }) => id);
    history.remove(ids);
    history.compact();
    return ids;
  });
  removeBuildRefs(removed, runtime);
  return 0;
}

function singleReference(positionals: readonly string[]): string | undefined {
  if (positionals.length > 1)
    throw new CommandLineError(`accepts at most 1 arg(s), received ${positionals.length}`);
  return positionals[0];
}
