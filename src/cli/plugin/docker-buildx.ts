/** bough as docker's builder: the program `docker-buildx`, a plug-in of docker's command line. */
import { existsSync } from "node:fs";
import { createConnection } from "node:net";
import type { CommandDef } from "citty";
import { type BoughError, CommandLineError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { describeForDocker, exitCodeOfDocker } from "../../terminal/failure.ts";
import { commit, version } from "../../version.ts";
import { noValues, type ParsedValues } from "../command-line/arguments.ts";
import type { Command } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { readArguments } from "../dispatch/read-arguments.ts";
import { definitionsOf, runRequest } from "../dispatch/run-command.ts";
import { withVariables } from "../process/environment.ts";
import type { Runtime } from "../process/runtime.ts";
import {
  dockerEnvironment,
  dockerProxies,
  dockerWords,
  parsePluginLine,
  withDefaults,
} from "./docker-command-line.ts";
import type { SubcommandCall } from "./subcommand.ts";
import { translateArguments } from "./translate-arguments.ts";

/** The release of buildx whose options bough accepts. `docker compose` requires 0.17, and other programs choose options by it. */
const buildxVersion = "0.29.1";

/** The answer to `docker-cli-plugin-metadata`. */
const metadata = {
  SchemaVersion: "0.1.0",
  Vendor: "bough",
  Version: `v${buildxVersion}+bough.${version}`,
  ShortDescription: "Build with bough, in the place of Docker Buildx",
};

/** A command of the plug-in, called with the words after its name. */
interface Subcommand {
  summary: string;
  run(words: readonly string[], call: BuildxCall): number | Promise<number>;
}

interface BuildxCall extends SubcommandCall {
  /** `--builder` before the command's name, else BUILDX_BUILDER. */
  builder: string | undefined;
  onGlobals(globals: GlobalOptions): void;
}

const subcommands: Readonly<Record<string, Subcommand>> = {
  build: {
    summary: "Start a build",
    async run(words, call) {
      const { build } = await import("../builds/build.ts");
      const asked = await parseCommand(build, words, call);
      const { values } = asked;
      if (!values.flag("help")) requireContext(values, call);
      return runAsPlugin(
        build,
        { ...asked, values: withDefaults(values, call.runtime, shouldLoad(values)) },
        call,
      );
    },
  },
  bake: {
    summary: "Build from a file",
    async run(words, call) {
      const { bake } = await import("../bake/bake.ts");
      const asked = await parseCommand(bake, words, call);
      const { values } = asked;
      return runAsPlugin(
        bake,
        { ...asked, values: withDefaults(values, call.runtime, shouldLoad(values)) },
        call,
      );
    },
  },
  imagetools: {
    summary: "Commands to work on images in registry",
    async run([command, ...words], call) {
      const { create, inspect } = await import("./imagetools.ts");
      const name = `${call.name} ${command}`;
      if (command === "inspect") return inspect(words, { ...call, name });
      if (command === "create") return create(words, { ...call, name });
      if (command !== undefined) throw unknownCommand(command, ["create", "inspect"]);
      call.runtime.stdout.write("Usage:  docker buildx imagetools create|inspect [OPTIONS]\n");
      return 0;
    },
  },
  history: {
    summary: "Commands to work on build records",
    async run([command, ...words], call) {
      const { historyCommands } = await import("./history.ts");
      const isKnown = command !== undefined && Object.hasOwn(historyCommands, command);
      const known = isKnown ? historyCommands[command] : undefined;
      if (known !== undefined) return known(words, { ...call, name: `${call.name} ${command}` });
      const hasReason = command !== undefined && Object.hasOwn(unsupportedHistoryCommands, command);
      const reason = hasReason ? unsupportedHistoryCommands[command] : undefined;
      if (reason !== undefined) throw usageError(`docker buildx history ${command}: ${reason}`);
      if (command !== undefined) throw unknownCommand(command, Object.keys(historyCommands));
      call.runtime.stdout.write("Usage:  docker buildx history export|inspect|logs|ls|rm [OPTIONS]\n");
      return 0;
    },
  },
  ls: {
    summary: "List builder instances",
    run: async (words, call) => (await import("./builders.ts")).list(words, call),
  },
  inspect: {
    summary: "Inspect current builder instance",
    run: async (words, call) => (await import("./builders.ts")).inspect(words, call),
  },
  du: {
    summary: "Disk usage",
    async run(words, call) {
      const { readDiskUsageOptions: readUsage } = await import("./builders.ts");
      const { df } = await import("../engine/df.ts");
      const { isJson } = readUsage(words, call.name);
      return runOnEngine(df, isJson, call);
    },
  },
  prune: {
    summary: "Remove build cache",
    async run(words, call) {
      const { readPruneOptions } = await import("./builders.ts");
      const { prune, pruneEngine } = await import("../engine/prune.ts");
      const request = readPruneOptions(words, call);
      const run: CommandDef["run"] = ({ data }) => pruneEngine(request, data);
      return runOnEngine({ ...prune, definition: { ...prune.definition, run } }, false, call);
    },
  },
  create: {
    summary: "Create a new builder instance (no effect: bough has one builder)",
    run: async (words, call) => (await import("./builders.ts")).create(words, call),
  },
  use: { summary: "Set the current builder instance (no effect)", run: acceptWithoutEffect },
  rm: { summary: "Remove one or more builder instances (no effect)", run: acceptWithoutEffect },
  stop: { summary: "Stop builder instance (no effect)", run: acceptWithoutEffect },
  install: {
    summary: "Make docker build call the plug-in (no effect: it does since docker 23)",
    run: () => 0,
  },
  version: {
    summary: "Show the version",
    run(_, { runtime }) {
      runtime.stdout.write(`github.com/docker/buildx ${metadata.Version} ${commit ?? "bough"}\n`);
      return 0;
    },
  },
};

async function acceptWithoutEffect(words: readonly string[], call: BuildxCall): Promise<number> {
  return (await import("./builders.ts")).acceptWithoutEffect(words, call);
}

/** Short names that buildx has for its commands. */
const aliases = new Map([
  ["b", "build"],
  ["f", "bake"],
]);

/** Commands of `docker buildx history` that need Docker Desktop, with what bough offers instead. */
const unsupportedHistoryCommands: Readonly<Record<string, string>> = {
  open: "`bough history report` writes a page about a build, for any browser",
  import: "records of other machines can't be added",
  trace: "`bough build --trace FILE` writes when each step ran",
};

/** Commands of buildx that bough lacks, with what it offers instead. */
const unsupportedCommands: Readonly<Record<string, string>> = {
  "dial-stdio": "there is no BuildKit to talk to: builds run in bough's own process",
  debug: "`bough build --on-error shell` opens a shell at a step that fails",
  uninstall: "`bough plugin remove` removes the plug-in",
};

/**
 * Runs a command line of `docker-buildx`, as docker's command line calls it (`docker-buildx buildx build .`), and as people and
 * `docker compose` do (`docker-buildx build .`). Returns the exit code.
 */
export async function runPlugin(
  words: readonly string[],
  runtime: Runtime,
  onGlobals: (globals: GlobalOptions) => void,
): Promise<number> {
  const [first = ""] = words;
  if (first === "docker-cli-plugin-metadata") {
    runtime.stdout.write(`${JSON.stringify(metadata)}\n`);
    return 0;
  }
  // docker calls this after other commands to get hints about them.
  if (first === "docker-cli-plugin-hooks") return 0;
  if (first.startsWith("__complete")) {
    // No suggestions: the shell completes names of files.
    runtime.stdout.write(":0\n");
    return 0;
  }
  const line = parsePluginLine(words);
  const environment = withVariables(runtime.environment, dockerEnvironment(line.values));
  const defaultBuildArgs = dockerProxies(environment);
  const called: Runtime = { ...runtime, environment, isPlugin: true, wordsOf: dockerWords, defaultBuildArgs };
  const name = aliases.get(line.command) ?? line.command;
  const found = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (found === undefined) {
    if (line.command !== "" && line.command !== "help") throw unknownCommand(line.command);
    runtime.stdout.write(overview());
    return 0;
  }
  const { rest, values } = line;
  const isHelp =
    values.some((before) => before.flag("help")) || rest.some((word) => /^(-h|--help)$/.test(word));
  if (isHelp && !["build", "bake"].includes(name)) {
    runtime.stdout.write(
      `Usage:  docker buildx ${name} [OPTIONS]\n\n${found.summary}\n\nThe options are those of buildx ${buildxVersion}.\n`,
    );
    return 0;
  }
  const builder =
    values.findLast((before) => before.text("builder"))?.text("builder") || environment.BUILDX_BUILDER;
  return found.run(rest, { name: `docker buildx ${name}`, builder, runtime: called, onGlobals });
}

/**
 * Calls `cancel` when docker's command line closes the socket for its plug-in, which it does at SIGTERM and at its end: it does not
 * forward signals.
 */
export function watchDocker({ environment }: Runtime, cancel: () => void): void {
  const { DOCKER_CLI_PLUGIN_SOCKET: address } = environment;
  if (address === undefined || address === "") return;
  // As in Go, @ stands for the null byte of an abstract socket.
  const socket = createConnection({ path: address.replace(/^@/, "\0") });
  let isConnected = false;
  socket.on("connect", () => {
    isConnected = true;
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    if (isConnected) cancel();
  });
  socket.resume();
  socket.unref();
}

/** A parsed command line of a buildx command. */
interface ParsedCommand {
  values: ParsedValues;
  /** `--builder`. */
  builder?: string | undefined;
  warnings?: readonly string[];
  /** True if the result is to be JSON. */
  isJson?: boolean;
}

/** Parses the arguments of a command as docker does. */
async function parseCommand(
  command: Command,
  words: readonly string[],
  { name }: BuildxCall,
): Promise<ParsedCommand> {
  const { remaining: others, ...asked } = await translateArguments(words, command);
  return { ...asked, values: await readArguments(others, definitionsOf(command), name, command, true) };
}

async function runAsPlugin(command: Command, asked: ParsedCommand, call: BuildxCall): Promise<number> {
  const { name, runtime, onGlobals } = call;
  const { values, builder = call.builder, warnings = [], isJson = false } = asked;
  for (const warning of warnings) runtime.stderr.write(`WARNING: ${warning}\n`);
  const { builderProfile } = await import("./builders.ts");
  const texts = new Map([
    ["profile", builderProfile(builder, runtime)],
    ["format", isJson ? "json" : undefined],
  ]);
  const before = { ...noValues, text: (name: string) => texts.get(name) };
  return runRequest(
    command,
    values,
    { name, before, usesDockerSyntax: true, showsFullHelp: true, commands: {} },
    // The option is the same as the variable, from which a build gets its name.
    { ...runtime, environment: withVariables(runtime.environment, { BUILDX_BUILDER: builder ?? "" }) },
    onGlobals,
  );
}

/** Runs a command about the engine's disk. As in docker, it is not an error that there is nothing before the first build. */
async function runOnEngine(command: Command, isJson: boolean, call: BuildxCall): Promise<number> {
  const { engineDirectory } = await import("../service/choice.ts");
  if (existsSync(engineDirectory(call.runtime)))
    return runAsPlugin(command, { values: { ...noValues, ignored: [] }, isJson }, call);
  if (!isJson) call.runtime.stdout.write("Total:\t0B\n");
  return 0;
}

/** True if the image is loaded into docker, as docker's default builder does unless an output is given. */
function shouldLoad(values: ParsedValues): boolean {
  const builds = values.text("call") === undefined && !values.flag("check") && !values.flag("print");
  return builds && !values.names.some((name) => ["output", "push", "load", "help", "list"].includes(name));
}

function requireContext({ positionals }: ParsedValues, { name }: BuildxCall): void {
  if (positionals.length === 1) return;
  throw usageError(
    `docker: '${name}' requires 1 argument`,
    `\nUsage:  ${name} [OPTIONS] PATH | URL | -\n\nRun '${name} --help' for more information`,
  );
}

function unknownCommand(command: string, names = Object.keys(subcommands)): BoughError {
  const known = unsupportedCommands[command];
  if (known !== undefined) return usageError(`docker buildx ${command}: ${known}`);
  const guess = nearest(command, names);
  return usageError(
    `unknown command: ${JSON.stringify(command)}`,
    guess === undefined
      ? "Run 'docker buildx --help': bough has these commands of buildx."
      : `Did you mean ${guess}?`,
  );
}

function overview(): string {
  const rows = Object.entries(subcommands).map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`);
  return [
    "Usage:  docker buildx [OPTIONS] COMMAND",
    "",
    `bough ${version}, in the place of Docker Buildx: builds without a daemon`,
    "",
    "Commands:",
    ...rows,
    "",
    "Run 'docker buildx COMMAND --help' for more information on a command.",
    "",
  ].join("\n");
}

/** Returns an error in the form and with the exit code of buildx, for programs that read its output. */
export function describePluginFailure(error: unknown): { text: string; exitCode: number } {
  const { details, reason } = describeForDocker(error, dockerWords);
  // docker has an exit code of its own for invalid options, and for invalid values that it parses with the command line.
  if (error instanceof CommandLineError) return { text: details + reason, exitCode: 125 };
  return { text: details + reason, exitCode: exitCodeOfDocker(error) };
}
