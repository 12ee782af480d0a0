/** The commands of buildx that are about builders and their caches. bough has one builder, which needs not be made. */

import { usageError } from "../../errors.ts";
import { parseGoDuration } from "../../go/duration.ts";
import { machineArchitecture } from "../../image/platform.ts";
import { version } from "../../version.ts";
import { loadProfiles } from "../auth/profiles.ts";
import { parseArguments } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import type { Runtime } from "../process/runtime.ts";
import { type FormattedRow, formatted } from "./format.ts";

/** What programs compare with a release of BuildKit: the one whose builds bough's are compared with, and bough's own. */
const buildkitVersion = `v0.25.2+bough.${version}`;

const common: ArgumentDefinitions = {
  builder: { type: "string", description: "A profile of bough; other names are taken, and mean the engine" },
  debug: { type: "boolean", alias: "D", description: "Enable debug logging" },
  help: { type: "boolean", alias: "h", description: "Print help and exit" },
};
const flag = { type: "boolean" } as const;
const text = { type: "string" } as const;
const texts = { type: "string", multiple: true } as const;
const names: ArgumentDefinitions = { name: { type: "positional", required: false, multiple: true } };

interface BuilderCall {
  /** `docker buildx ls` */
  name: string;
  runtime: Runtime;
}

/** A builder as `ls` and `inspect` show it. */
interface Builder {
  name: string;
  isCurrent: boolean;
  driver: string;
  endpoint: string;
  platforms: readonly string[];
}

/** Prints the engine, and bough's profiles, in the form of buildx. */
export async function list(words: readonly string[], { name, runtime }: BuilderCall): Promise<number> {
  const values = parseArguments(words, { ...common, format: text, "no-trunc": flag }, name);
  const builders = await findBuilders(runtime);
  const format = values.text("format") ?? "table";
  if (format === "json")
    for (const builder of builders) runtime.stdout.write(`${JSON.stringify(asInBuildx(builder))}\n`);
  else
    runtime.stdout.write(
      formatted(format === "table" ? defaultTable : format, headers, builders.flatMap(rowsOf)),
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

/** A builder, and its one node. */
function rowsOf({ name, isCurrent, driver, endpoint, platforms }: Builder): FormattedRow[] {
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

/** Prints one of them. A name that bough does not know is the engine's: scripts make builders of their own. */
export async function inspect(words: readonly string[], { name, runtime }: BuilderCall): Promise<number> {
  const values = parseArguments(words, { ...common, ...names, bootstrap: flag }, name);
  const [given = values.text("builder")] = values.positionals;
  const builders = await findBuilders(runtime);
  const found = builders.find((builder) => builder.name === given);
  const [current] = builders.filter(({ isCurrent }) => isCurrent);
  const builder = found ?? { ...(current ?? engineOf([])), name: given ?? current?.name ?? "default" };
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

/** Takes the options with which scripts make builders, and says that there is nothing to make. */
export function create(words: readonly string[], { name, runtime }: BuilderCall): number {
  const values = parseArguments(
    words,
    {
      ...{ ...common, append: flag, bootstrap: flag, leave: flag, use: flag, name: text },
      endpoint: { type: "positional", required: false },
      ...{ driver: text, "driver-opt": texts, node: text, platform: texts },
      ...{ "buildkitd-config": text, "buildkitd-flags": text, config: text },
    },
    name,
  );
  runtime.stderr.write(
    "[INFO] bough has one builder, its engine: there is nothing to make, and --builder makes no difference\n",
  );
  runtime.stdout.write(`${values.text("name") ?? "default"}\n`);
  return 0;
}

/** `use`, `rm` and `stop`: of builders that `create` has not made. */
export function leaveAsItIs(words: readonly string[], { name, runtime }: BuilderCall): number {
  const values = parseArguments(
    words,
    {
      ...{ ...common, ...names, default: flag, global: flag, force: { ...flag, alias: "f" } },
      ...{ "all-inactive": flag, "keep-state": flag, "keep-daemon": flag, timeout: text },
    },
    name,
  );
  if (name.endsWith(" rm"))
    for (const builder of values.positionals) runtime.stdout.write(`${builder} removed\n`);
  return 0;
}

/** Returns the name of the profile of bough that `--builder` names; `undefined` for other names. */
export function profileOf(builder: string | undefined, runtime: Runtime): string | undefined {
  return builder !== undefined && loadProfiles(runtime).profiles.byName.has(builder) ? builder : undefined;
}

/** Turns the options of `docker buildx prune` into those of `bough engine prune`. */
export function readPrune(words: readonly string[], name: string) {
  const values = parseArguments(
    words,
    {
      ...{
        ...common,
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
    return ageOf(age) ?? age;
  });
  const [kept] = ["max-used-space", "reserved-space", "keep-storage"].flatMap(
    (option) => values.text(option) ?? [],
  );
  if (ages.length > 1) throw usageError(`${name}: --filter is given twice, but one AGE counts`);
  return {
    // What docker calls all is its cache: images with a tag stay.
    sessions: values.flag("all"),
    yes: values.flag("force"),
    keep: kept,
    "older-than": ages[0],
  };
}

/** Returns a duration of Go, such as `1h30m`, as `--older-than` takes it; `undefined` for others. */
function ageOf(duration: string): string | undefined {
  const nanoseconds = parseGoDuration(duration);
  if (nanoseconds === undefined || nanoseconds < 0) return undefined;
  const seconds = nanoseconds / 1e9;
  return seconds < 1e6 ? `${Math.round(seconds)}s` : `${Math.round(seconds / 60)}m`;
}

/** Turns the options of `docker buildx du` into those of `bough engine df`. */
export function readUsage(words: readonly string[], name: string) {
  const values = parseArguments(
    words,
    { ...common, filter: texts, format: text, verbose: flag, timeout: text },
    name,
  );
  const format = values.text("format");
  if (values.list("filter").length > 0) throw usageError(`${name}: bough has no filters for --filter`);
  if (format !== undefined && !["json", "pretty", "table"].includes(format))
    throw usageError(`${name}: --format takes table or json, not ${JSON.stringify(format)}`);
  return { format: format === "json" ? format : undefined };
}

async function findBuilders(runtime: Runtime): Promise<Builder[]> {
  const { profiles, active } = loadProfiles(runtime);
  const { emulatedPlatforms } = await import("../../engine/system/emulation.ts");
  const engine = engineOf(emulatedPlatforms() ?? []);
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

function engineOf(emulated: readonly string[]): Builder {
  const own = `linux/${machineArchitecture()}`;
  return {
    name: "default",
    isCurrent: true,
    driver: "bough",
    endpoint: "default",
    platforms: [own, ...emulated.filter((platform) => platform !== own)],
  };
}

function asInBuildx({ name, isCurrent, driver, endpoint, platforms }: Builder): object {
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
