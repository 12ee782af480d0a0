/** The commands of buildx about builders and their caches. bough has one builder, its engine, which always exists. */
import { usageError } from "../../errors.ts";
import { parseGoDuration } from "../../go/duration.ts";
import { machineArchitecture } from "../../image/platform.ts";
import { version } from "../../version.ts";
import { loadProfiles } from "../auth/profiles.ts";
import { parseArguments } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { parseTime } from "../command-line/option-values.ts";
import type { PruneRequest } from "../engine/prune.ts";
import type { Runtime } from "../process/runtime.ts";
import { parseKeepSize } from "../service/make-room.ts";
import { type FormattedRow, formatRows } from "./format.ts";
import { commandOptions, type SubcommandCall } from "./subcommand.ts";

/** The version that programs compare with releases of BuildKit: the release that bough is tested against, and bough's own version. */
const buildkitVersion = `v0.25.2+bough.${version}`;

const flag = { type: "boolean" } as const;
const text = { type: "string" } as const;
const texts = { type: "string", multiple: true } as const;
const names: ArgumentDefinitions = { name: { type: "positional", required: false, multiple: true } };

/** A builder as `ls` and `inspect` show it. */
interface Builder {
  name: string;
  isCurrent: boolean;
  driver: string;
  endpoint: string;
  platforms: readonly string[];
}

/** Prints the engine, and bough's profiles, in the form of buildx. */
export async function list(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(words, { ...commandOptions, format: text, "no-trunc": flag }, name);
  const builders = await findBuilders(runtime);
  const format = values.text("format") ?? "table";
  if (format === "json")
    for (const builder of builders) runtime.stdout.write(`${JSON.stringify(builderJson(builder))}\n`);
  else
    runtime.stdout.write(
      formatRows(format === "table" ? defaultTable : format, headers, builders.flatMap(builderRows)),
    );
  return 0;
}

const defaultTable = "table {{.Name}}\t{{.DriverEndpoint}}\t{{.Status}}\t{{.Buildkit}}\t{{.Platforms}}";

/** The fields of `docker buildx ls`, with their titles in a table. */
const headers = {
  ...{
    Name: "NAME/NODE",
    DriverEndpoint: "DRIVER/ENDPOINT",
    LastActivity: "LAST ACTIVITY",
    Status: "STATUS",
  },
  ...{ Buildkit: "BUILDKIT", Platforms: "PLATFORMS", Error: "Error" },
};

/** Returns the rows of a builder and of its only node. */
function builderRows({ name, isCurrent, driver, endpoint, platforms }: Builder): FormattedRow[] {
  const nothing = { LastActivity: "", Error: "" };
  return [
    {
      ...{
        plain: { ...nothing, Name: name, DriverEndpoint: driver, Status: "", Buildkit: "", Platforms: "" },
      },
      inTable: { Name: `${name}${isCurrent ? "*" : ""}` },
    },
    {
      plain: {
        ...{ ...nothing, Name: name, DriverEndpoint: endpoint, Status: "running" },
        ...{ Buildkit: buildkitVersion, Platforms: platforms.join(", ") },
      },
      inTable: { Name: ` \\_ ${name}`, DriverEndpoint: ` \\_ ${endpoint}` },
    },
  ];
}

/** Prints a builder. An unknown name stands for the engine, as scripts create builders with names of their own. */
export async function inspect(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(words, { ...commandOptions, ...names, bootstrap: flag }, name);
  const [given = values.text("builder")] = values.positionals;
  const builders = await findBuilders(runtime);
  const found = builders.find((builder) => builder.name === given);
  const [current] = builders.filter(({ isCurrent }) => isCurrent);
  const builder = found ?? { ...(current ?? engineBuilder([])), name: given ?? current?.name ?? "default" };
  const lines = [
    ["Name:", builder.name],
    ["Driver:", builder.driver],
    [],
    ["Nodes:", ""],
    ["Name:", builder.name],
    ["Endpoint:", builder.endpoint],
    ["Status:", "running"],
    ["BuildKit version:", buildkitVersion],
    ["Platforms:", builder.platforms.join(", ")],
  ];
  const width = 18;
  const isNode = (at: number) => at > 3;
  runtime.stdout.write(
    lines
      .map(([label = "", value = ""], at) =>
        label === "" ? "\n" : `${`${label.padEnd(isNode(at) ? width : 15)}${value}`.trimEnd()}\n`,
      )
      .join(""),
  );
  return 0;
}

/** Accepts the options with which scripts create builders, and logs that bough needs none. */
export function create(words: readonly string[], { name, runtime }: SubcommandCall): number {
  const values = parseArguments(
    words,
    {
      ...{ ...commandOptions, append: flag, bootstrap: flag, leave: flag, use: flag, name: text },
      endpoint: { type: "positional", required: false },
      ...{ driver: text, "driver-opt": texts, node: text, platform: texts },
      ...{ "buildkitd-config": text, "buildkitd-flags": text, config: text },
    },
    name,
  );
  runtime.stderr.write(
    "[INFO] bough has one builder, its engine: nothing is created, and --builder makes no difference\n",
  );
  runtime.stdout.write(`${values.text("name") ?? "default"}\n`);
  return 0;
}

/** Accepts `use`, `rm` and `stop` for any builder. */
export function acceptWithoutEffect(words: readonly string[], { name, runtime }: SubcommandCall): number {
  const values = parseArguments(
    words,
    {
      ...{ ...commandOptions, ...names, default: flag, global: flag, force: { ...flag, alias: "f" } },
      ...{ "all-inactive": flag, "keep-state": flag, "keep-daemon": flag, timeout: text },
    },
    name,
  );
  if (name.endsWith(" rm"))
    for (const builder of values.positionals) runtime.stdout.write(`${builder} removed\n`);
  return 0;
}

/** Returns the value of `--builder` if it is the name of a profile. */
export function builderProfile(builder: string | undefined, runtime: Runtime): string | undefined {
  return builder !== undefined && loadProfiles(runtime).profiles.byName.has(builder) ? builder : undefined;
}

/** Returns what the options of `docker buildx prune` mean. */
export function readPruneOptions(
  words: readonly string[],
  { name, runtime: { clock } }: SubcommandCall,
): PruneRequest {
  const values = parseArguments(
    words,
    {
      ...{
        ...commandOptions,
        all: { ...flag, alias: "a" },
        force: { ...flag, alias: "f" },
        verbose: flag,
        filter: texts,
      },
      ...{ "keep-storage": text, "max-used-space": text, "reserved-space": text, "min-free-space": text },
      timeout: text,
    },
    name,
  );
  const ages = values.list("filter").map((filter) => {
    const [, age] = /^(?:until|unused-for)=(.+)$/.exec(filter) ?? [];
    if (age === undefined)
      throw usageError(`${name}: --filter takes until=AGE here, not ${JSON.stringify(filter)}`);
    const nanoseconds = parseGoDuration(age) ?? -1;
    return nanoseconds < 0
      ? Date.parse(parseTime(age, `${name}: --filter until`, clock))
      : clock.now() - nanoseconds / 1e6;
  });
  const [kept] = ["max-used-space", "reserved-space", "keep-storage"].flatMap((option) => {
    const size = values.text(option);
    return size === undefined ? [] : parseKeepSize(size, `--${option}`);
  });
  if (ages.length > 1) throw usageError(`${name}: --filter is given twice, but one AGE counts`);
  return {
    // In docker, `--all` means all of the cache: images with a tag are kept.
    sessions: values.flag("all"),
    yes: values.flag("force"),
    keep: kept,
    "older-than": ages[0],
  };
}

/** Returns how `docker buildx du` prints its result. */
export function readDiskUsageOptions(words: readonly string[], name: string): { isJson: boolean } {
  const values = parseArguments(
    words,
    { ...commandOptions, filter: texts, format: text, verbose: flag, timeout: text },
    name,
  );
  const format = values.text("format");
  if (values.list("filter").length > 0) throw usageError(`${name}: bough has no filters for --filter`);
  if (format !== undefined && !["json", "pretty", "table"].includes(format))
    throw usageError(`${name}: --format takes table or json, not ${JSON.stringify(format)}`);
  return { isJson: format === "json" };
}

async function findBuilders(runtime: Runtime): Promise<Builder[]> {
  const { profiles, active } = loadProfiles(runtime);
  const { emulatedPlatforms } = await import("../../engine/system/emulation.ts");
  const engine = engineBuilder(emulatedPlatforms() ?? []);
  const remotes = [...profiles.byName].map(
    ([name, profile]): Builder => ({
      name,
      isCurrent: name === active,
      driver: "remote",
      endpoint: profile.url ?? "",
      platforms: [],
    }),
  );
  const isCurrent = remotes.every((remote) => !remote.isCurrent);
  return [
    ...(remotes.some((remote) => remote.name === engine.name) ? [] : [{ ...engine, isCurrent }]),
    ...remotes,
  ];
}

function engineBuilder(emulated: readonly string[]): Builder {
  const own = `linux/${machineArchitecture()}`;
  return {
    name: "default",
    isCurrent: true,
    driver: "bough",
    endpoint: "default",
    platforms: [own, ...emulated.filter((platform) => platform !== own)],
  };
}

function builderJson({ name, isCurrent, driver, endpoint, platforms }: Builder): object {
  return {
    Current: isCurrent,
    Driver: driver,
    Dynamic: false,
    Name: name,
    Nodes: [
      {
        Endpoint: endpoint,
        Name: name,
        Platforms: platforms,
        Status: "running",
        Version: buildkitVersion,
      },
    ],
  };
}
