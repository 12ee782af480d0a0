import { existsSync, mkdirSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import { dockerDirectory } from "../../home-directory.ts";
import { reasonOf } from "../../system-error.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import type { Runtime } from "../process/runtime.ts";
import { type PluginState, pluginFile } from "./plugin-file.ts";

/** The name by which docker's command line finds its builder. */
const pluginName = "docker-buildx";

export const install = command({
  name: "install",
  description:
    "Make bough docker's builder: `docker build`, `docker buildx` and `docker compose build` call it then, without a daemon.",
  args: {
    force: {
      type: "boolean",
      description: `Move a ${pluginName} that is there already aside; \`bough plugin remove\` brings it back`,
    },
  },
  run(invocation) {
    const { values, runtime, log } = invocation;
    const path = pluginPath(runtime);
    const program = ownProgram();
    const file = pluginFile(runtime.platform);
    const state = stateOf(path, runtime);
    if (state.kind === "foreign") {
      if (!values.flag("force"))
        throw new BoughError(`${path} exists, and is not bough's`, {
          hint: "`bough plugin install --force` moves it aside, and `bough plugin remove` brings it back.",
        });
      const aside = asidePath(path);
      if (existsSync(aside))
        throw new BoughError(`cannot move ${path} aside: ${aside} exists already`, {
          hint: "Remove one of them.",
        });
      withPluginError(path, () => renameSync(path, aside));
      log.info(`moved ${path} to ${aside}`);
    }
    withPluginError(path, () => {
      if (state.kind === "installed") file.remove(path);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      file.install(program, path);
    });
    log.info("`docker build`, `docker buildx` and `docker compose build` now call bough");
    print(invocation, path);
  },
  examples: [
    ["plugin install", "for docker's command line of this user"],
    ["plugin install --force", "in the place of a docker-buildx in the same directory"],
  ],
  agentNote: "This command changes what `docker build` does for this user. `bough plugin remove` undoes it.",
});

export const remove = command({
  name: "remove",
  description: "Leave docker's command line with the builder that it had before.",
  run(invocation) {
    const { runtime, log } = invocation;
    const path = pluginPath(runtime);
    const { kind } = stateOf(path, runtime);
    if (kind !== "installed")
      throw new BoughError(
        kind === "missing"
          ? `bough is not installed as docker's builder: there is no ${path}`
          : `${path} is not bough's, so it is not removed`,
        { hint: "`bough plugin status` shows what is there." },
      );
    withPluginError(path, () => pluginFile(runtime.platform).remove(path));
    const aside = asidePath(path);
    if (existsSync(aside)) {
      withPluginError(path, () => renameSync(aside, path));
      log.info(`moved ${aside} back to ${path}`);
    }
    print(invocation, path);
  },
  examples: [
    ["plugin remove", "what `bough plugin install` did is undone"],
    ["plugin remove -q", "print only the path"],
  ],
  agentNote: "This command removes only what `bough plugin install` has made.",
});

export const status = command({
  name: "status",
  description: "Show whether docker's command line calls bough to build.",
  run: (invocation) => print(invocation, pluginPath(invocation.runtime)),
  examples: [
    ["plugin status", "the plug-in, and the program it is"],
    ["plugin status -f json", "as JSON, for other programs"],
  ],
  agentNote: "No file is changed.",
});

function print(invocation: Invocation, path: string): void {
  const state = stateOf(path, invocation.runtime);
  const program = state.kind === "installed" ? state.program : null;
  const words = {
    missing: "not installed",
    installed: state.kind === "installed" && !state.isCurrent ? "installed, of another bough" : "installed",
    foreign: "not bough's",
  }[state.kind];
  printResult(invocation, {
    id: path,
    json: {
      path,
      state: state.kind,
      program,
      isCurrent: state.kind === "installed" && state.isCurrent,
    },
    table: () => ({
      header: ["PLUG-IN", "STATE", "PROGRAM"],
      rows: [[{ whole: path }, words, program && { whole: program }]],
    }),
  });
}

/** Returns the plug-in's path in the directory that docker's command line searches before those of the system. */
function pluginPath({ environment, platform }: Pick<Runtime, "environment" | "platform">): string {
  const name = platform === "win32" ? `${pluginName}.exe` : pluginName;
  return join(dockerDirectory(environment), "cli-plugins", name);
}

/**
 * Returns the path for the plug-in that bough replaces. Its name does not begin with `docker-`: docker's command line would warn that
 * it is not a valid plug-in.
 */
function asidePath(path: string): string {
  return join(dirname(path), `before-bough.${basename(path)}`);
}

function withPluginError<Result>(path: string, change: () => Result): Result {
  try {
    return change();
  } catch (error) {
    throw new BoughError(`${path} cannot be read or changed: ${reasonOf(error)}`, {
      hint: "DOCKER_CONFIG names another directory for docker's configuration and plug-ins.",
      cause: error,
    });
  }
}

function stateOf(path: string, { platform }: Pick<Runtime, "platform">): PluginState {
  return withPluginError(path, () => pluginFile(platform).stateOf(path));
}

/** Returns the path of the compiled program. */
function ownProgram(): string {
  if (Bun.isStandaloneExecutable) return process.execPath;
  throw new BoughError("bough runs from its source: docker's command line can only call a compiled program", {
    hint: "./scripts/build makes one: dist/bough plugin install",
  });
}
