/** bough in the place of docker's builder: the program `docker-buildx`, a plug-in of docker's command line. */
import { existsSync } from "node:fs";
import { createConnection } from "node:net";
import { type BoughError, CommandLineError, usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { describeForDocker, exitCodeOfDocker } from "../../terminal/failure.ts";
import { commit, version } from "../../version.ts";
import type { ParsedValues } from "../command-line/arguments.ts";
import type { Command } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { valuesOf, withOptions } from "../command-line/request.ts";
import { readArguments } from "../dispatch/read-arguments.ts";
import { definitionsOf, runRequest } from "../dispatch/run-command.ts";
import { withVariables } from "../process/environment.ts";
import type { Runtime } from "../process/runtime.ts";
import { readWords } from "./buildx-words.ts";
import {
  defaultOptions,
  dockerEnvironment,
  dockerProxies,
  dockerWords,
  readPluginLine,
} from "./docker-words.ts";

/** The release of buildx whose options bough takes. `docker compose` wants 0.17 or later, others choose options by it. */
const buildxVersion = "0.29.1";

/** What docker's command line asks each plug-in for. */
const metadata = {
  SchemaVersion: "0.1.0",
  Vendor: "bough",
  Version: `v${buildxVersion}+bough.${version}`,
  ShortDescription: "Build with bough, in the place of Docker Buildx",
};

/** One of the plug-in's commands, called with the words after its name. */
interface Subcommand {
  summary: string;
  run(words: readonly string[], call: Call): number | Promise<number>;
}

interface Call {
  /** What the user wrote: `docker buildx build`. */
  name: string;
  /** `--builder` before the command's name, else BUILDX_BUILDER. */
  builder: string | undefined;
  runtime: Runtime;
  onGlobals(globals: GlobalOptions): void;
}

const subcommands: Readonly<Record<string, Subcommand>> = {
  build: {
    summary: "Start a build",
    async run(words, call) {
      const { build } = await import("../builds/build.ts");
      const asked = await read(build, words, call);
      const { values } = asked;
      if (!values.flag("help")) requireContext(values, call);
      const own = { load: loads(values), ...defaultOptions(values, call.runtime) };
      return runAsPlugin(build, { ...asked, values: withOptions(values, own) }, call);
    },
  },
  bake: {
    summary: "Build from a file",
    async run(words, call) {
      const { bake } = await import("../bake/bake.ts");
      const asked = await read(bake, words, call);
      const { values } = asked;
      const { progress } = defaultOptions(values, call.runtime);
      const defaultBuildArgs = dockerProxies(call.runtime.environment);
      return runAsPlugin(
        bake,
        { ...asked, values: withOptions(values, { load: loads(values), progress }) },
        { ...call, runtime: { ...call.runtime, defaultBuildArgs } },
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
      const hasReason = command !== undefined && Object.hasOwn(historyReasons, command);
      const reason = hasReason ? historyReasons[command] : undefined;
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
      const { readUsage } = await import("./builders.ts");
      const { df } = await import("../engine/df.ts");
      return runOnEngine(df, readUsage(words, call.name), call);
    },
  },
  prune: {
    summary: "Remove build cache",
    async run(words, call) {
      const { readPrune } = await import("./builders.ts");
      const { prune } = await import("../engine/prune.ts");
      return runOnEngine(prune, readPrune(words, call.name), call);
    },
  },
  create: {
    summary: "Taken, and makes nothing: bough has one builder",
    run: async (words, call) => (await import("./builders.ts")).create(words, call),
  },
  use: { summary: "Taken, and changes nothing", run: leaveAsItIs },
  rm: { summary: "Taken, and removes nothing", run: leaveAsItIs },
  stop: { summary: "Taken, and stops nothing", run: leaveAsItIs },
  install: {
    summary: "Taken, and changes nothing: docker build calls the plug-in, since docker 23",
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

async function leaveAsItIs(words: readonly string[], call: Call): Promise<number> {
  return (await import("./builders.ts")).leaveAsItIs(words, call);
}

/** Other names that buildx has for its commands. */
const synonyms = new Map([
  ["b", "build"],
  ["f", "bake"],
]);

/** Commands of `docker buildx history` that are about docker's desktop program, and what bough has. */
const historyReasons: Readonly<Record<string, string>> = {
  open: "`bough history report` writes a page about a build, for any browser",
  import: "records of other machines can't be added",
  trace: "`bough build --trace FILE` writes when each step ran",
};

/** Commands of buildx that bough has nothing for, and what it has. */
const reasons: Readonly<Record<string, string>> = {
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
  // Called after other commands, for hints about them.
  if (first === "docker-cli-plugin-hooks") return 0;
  if (first.startsWith("__complete")) {
    // No suggestions: the shell completes names of files.
    runtime.stdout.write(":0\n");
    return 0;
  }
  const line = readPluginLine(words);
  const environment = withVariables(runtime.environment, dockerEnvironment(line.values));
  const called: Runtime = { ...runtime, environment, isPlugin: true, wordsOf: dockerWords };
  const name = synonyms.get(line.command) ?? line.command;
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
 * Calls `cancel` when docker's command line, which does not pass signals on, closes the socket that it has for its plug-in: at
 * SIGTERM, and at its end.
 */
export function watchDocker({ environment }: Runtime, cancel: () => void): void {
  const { DOCKER_CLI_PLUGIN_SOCKET: address } = environment;
  if (address === undefined || address === "") return;
  // As in Go, @ begins the name of a socket that is in no directory.
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

/** What a command is asked to do in docker's words. */
interface Asked {
  values: ParsedValues;
  /** `--builder`. */
  builder?: string | undefined;
  warnings?: readonly string[];
}

/** Parses a command's words as docker means them. */
async function read(command: Command, words: readonly string[], { name }: Call): Promise<Asked> {
  const { others, ...asked } = await readWords(words, command);
  return { ...asked, values: await readArguments(others, definitionsOf(command), name, command, true) };
}

async function runAsPlugin(command: Command, asked: Asked, call: Call): Promise<number> {
  const { name, runtime, onGlobals } = call;
  const { values, builder = call.builder, warnings = [] } = asked;
  for (const warning of warnings) runtime.stderr.write(`WARNING: ${warning}\n`);
  const { profileOf } = await import("./builders.ts");
  const before = valuesOf({ profile: profileOf(builder, runtime) });
  return runRequest(
    command,
    values,
    { name, before, isAsInDocker: true, helpsFully: true, commands: {} },
    // The option and the variable mean the same. A build is named by it.
    { ...runtime, environment: withVariables(runtime.environment, { BUILDX_BUILDER: builder ?? "" }) },
    onGlobals,
  );
}

/** Runs a command about the engine's disk. There is nothing on it before the first build, which is no error in docker. */
async function runOnEngine(
  command: Command,
  options: Parameters<typeof valuesOf>[0],
  call: Call,
): Promise<number> {
  const { engineDirectory } = await import("../service/choice.ts");
  const values = { ...valuesOf(options), ignored: [] };
  if (existsSync(engineDirectory(call.runtime))) return runAsPlugin(command, { values }, call);
  if (values.text("format") !== "json") call.runtime.stdout.write("Total:\t0B\n");
  return 0;
}

/** True if the image goes where docker's default builder puts it: where nothing says that it is written or sent elsewhere. */
function loads(values: ParsedValues): boolean {
  const builds = values.text("call") === undefined && !values.flag("check") && !values.flag("print");
  return builds && !values.names.some((name) => ["output", "push", "load", "help", "list"].includes(name));
}

function requireContext({ positionals }: ParsedValues, { name }: Call): void {
  if (positionals.length === 1) return;
  throw usageError(
    `docker: '${name}' requires 1 argument`,
    `\nUsage:  ${name} [OPTIONS] PATH | URL | -\n\nRun '${name} --help' for more information`,
  );
}

function unknownCommand(command: string, names = Object.keys(subcommands)): BoughError {
  const known = reasons[command];
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

/** Returns an error as buildx prints it, so that what reads buildx's output finds it, and the exit code that buildx has for it. */
export function describePluginFailure(error: unknown): { text: string; exitCode: number } {
  const { details, reason } = describeForDocker(error, dockerWords);
  // docker's command line has a code of its own for options that are wrong, and for values that it parses itself.
  if (error instanceof CommandLineError) return { text: details + reason, exitCode: 125 };
  return { text: details + reason, exitCode: exitCodeOfDocker(error) };
}
