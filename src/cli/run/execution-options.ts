/** Options of commands that run something in an image: its environment, user, limits, files and network. */
import { resolve } from "node:path";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { utf8Text } from "../../open-for-reading.ts";
import { reasonOf } from "../../system-error.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Invocation } from "../command-line/command.ts";
import type { ArgumentDefinition, ArgumentDefinitions } from "../command-line/definitions.ts";
import { splitPair } from "../command-line/option-values.ts";
import { readOptions } from "../command-line/options.ts";
import type { Runtime } from "../process/runtime.ts";
import { readPlatform } from "../references/image-argument.ts";
import { parseFileArgument, parseVolume } from "./file-argument.ts";

import type { LatestFailedStep, UnresolvedRun } from "./image-command.ts";
import { limitDefinitions, limitParsers, limitsOf } from "./limit-options.ts";
import { hostsDefinition, networkDefinition, parseHosts, parseNetworkMode } from "./network-option.ts";

export const platformDefinition: ArgumentDefinition = {
  type: "string",
  refusesEmpty: true,
  valueHint: "PLATFORM",
  description: "IMAGE for this platform, such as linux/arm64 (default: the service's own)",
};

export const executionDefinitions: ArgumentDefinitions = {
  env: {
    type: "string",
    refusesEmpty: true,
    alias: "e",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Environment variable; without =VALUE, its value on this machine",
  },
  "env-file": {
    type: "string",
    refusesEmpty: true,
    completes: "file",
    valueHint: "FILE",
    multiple: true,
    description: "Variables from a file, one KEY[=VALUE] per line; --env overrides them",
  },
  cwd: {
    type: "string",
    alias: "C",
    synonyms: ["--workdir", "-w"],
    valueHint: "PATH",
    description: "Working directory, absolute (default: the image's, else /)",
  },
  user: {
    type: "string",
    refusesEmpty: true,
    alias: "u",
    valueHint: "USER[:GROUP]",
    description: "User of the command, by name or number (default: the image's, else root)",
  },
  "failed-step": {
    type: "boolean",
    description:
      "In place of the step at which the session's build failed: with its files, ENV, WORKDIR, USER",
  },
  "no-config": {
    type: "boolean",
    description: "Ignore the image's ENV, WORKDIR and USER",
  },
  ...limitDefinitions,
  memory: { ...limitDefinitions.memory, synonyms: ["-m"] },
  file: {
    type: "string",
    completes: "file",
    alias: "F",
    valueHint: "HOST[:PATH][:uN][:gN][:mMODE]",
    multiple: true,
    description:
      "Copy a file or directory into the image first (default PATH: its name, in the working directory)",
  },
  "file-excludes": {
    type: "string",
    valueHint: "PATTERN",
    multiple: true,
    description: "Exclude from directories, in addition to .git, node_modules and similar files",
  },
  volume: {
    type: "string",
    completes: "directory",
    alias: "v",
    valueHint: "DIR:PATH[:ro]",
    multiple: true,
    description: "Mount a directory of this machine, on bough's own engine; what is written to it stays",
  },
  hostname: {
    type: "string",
    dockerLetter: "h",
    refusesEmpty: true,
    valueHint: "NAME",
    description: "Host name that the command sees (default: linuxkit)",
  },
  network: networkDefinition("the command"),
  "add-host": hostsDefinition("the command"),
};

/** Reads `--failed-step`. */
export function readFailedStep(values: Values): LatestFailedStep | undefined {
  if (!values.flag("failed-step")) return undefined;
  const hasImage = ["use", "platform"].some((name) => values.text(name) !== undefined);
  return latestStep(hasImage || values.positionals.length > 0);
}

/** @param hasImage whether an image is given, too */
export function latestStep(hasImage: boolean): LatestFailedStep {
  if (hasImage) {
    throw usageError(
      wording`${{ option: "failed-step" }} runs in that step's image: no other image can be given`,
      wording`Give the session with ${{ option: "session", letter: "S" }}, and the command after --: ${{ command: "run", options: [{ option: "failed-step" }], words: ["--", "COMMAND"], session: { placeholder: "build:<hash>" }, isLine: true }}`,
    );
  }
  return { kind: "latest step" };
}

/** Reads `--platform`, which chooses among the images of a name. */
export function readImagePlatform(values: Values, image: string | undefined): string | undefined {
  const platform = readPlatform(values.text("platform"));
  if (platform !== undefined && image === undefined)
    throw usageError(
      wording`${{ option: "platform" }} needs an IMAGE`,
      "The session's image has the platform that it has.",
    );
  return platform;
}

type ExecutionOptions = Pick<
  UnresolvedRun,
  | "env"
  | "cwd"
  | "user"
  | "ignoresConfig"
  | "limits"
  | "files"
  | "excludes"
  | "volumes"
  | "hostname"
  | "network"
  | "hosts"
>;

/** `readsFiles`: false to leave out the variables of `--env-file`. */
export async function readExecutionOptions(
  { values, runtime }: Invocation,
  { readsFiles = true } = {},
): Promise<ExecutionOptions> {
  const cwd = values.text("cwd");
  if (cwd?.startsWith("/") === false) {
    throw usageError(
      wording`${{ option: "cwd" }} takes an absolute path in the image, not ${JSON.stringify(cwd)}`,
    );
  }
  return {
    env: {
      ...(readsFiles && (await readEnvironmentFiles(values.list("env-file"), runtime))),
      ...readEnvironment(values.list("env"), runtime.environment),
    },
    cwd,
    user: values.text("user"),
    ignoresConfig: values.flag("no-config"),
    limits: limitsOf(readOptions(values, limitDefinitions, limitParsers)),
    files: values.list("file").map(parseFileArgument),
    excludes: values.list("file-excludes"),
    volumes: values.list("volume").map((text) => parseVolume(text, runtime.workingDirectory)),
    hostname: readHostname(values.text("hostname")),
    network: parseNetworkMode(values.text("network") ?? "default"),
    hosts: parseHosts(values.list("add-host")),
  };
}

/** Checks a host name by the engine's rule. */
function readHostname(given: string | undefined): string | undefined {
  if (given === undefined || /^[A-Za-z0-9._-]{1,63}$/.test(given)) return given;
  throw usageError(
    `--hostname takes up to 63 letters, digits, dots, hyphens and underscores, not ${JSON.stringify(given)}`,
    "For example: --hostname web.",
  );
}

/** Parses `KEY=VALUE`. `KEY` alone takes the value of this process's variable, as in `docker run -e`. */
export function readEnvironment(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const [name, value = environment[text]] = splitPair(text);
      if (name !== "" && value !== undefined) return [name, value];
      throw name === ""
        ? usageError(
            wording`${{ option: "env" }} takes KEY=VALUE, not ${JSON.stringify(text)}`,
            "The name is missing.",
          )
        : usageError(
            wording`${{ option: "env" }} ${text}: the variable is not set`,
            wording`Write ${{ option: "env" }} ${text}=VALUE, or export it first.`,
          );
    }),
  );
}

/**
 * Reads `--env-file` as docker does, with a variable on each line. `KEY` alone takes the value of this process's variable, or is left out
 * if there is none. Empty lines and lines that begin with `#` are skipped. Quotes are part of a value.
 */
async function readEnvironmentFiles(
  paths: readonly string[],
  runtime: Pick<Runtime, "environment" | "workingDirectory" | "inputs" | "signal">,
): Promise<Record<string, string>> {
  const variables: [string, string][] = [];
  for (const path of paths)
    for (const [index, line] of (await readLines(path, runtime)).entries()) {
      const text = line.trimStart();
      if (text === "" || text.startsWith("#")) continue;
      const [name, value = runtime.environment[text]] = splitPair(text);
      if (name === "" || /\s/.test(name))
        throw usageError(
          `--env-file ${path}: line ${index + 1} does not begin with a variable name`,
          "Each line is KEY=VALUE or KEY, without spaces in KEY.",
        );
      if (value !== undefined) variables.push([name, value]);
    }
  return Object.fromEntries(variables);
}

const maxEnvironmentBytes = 16 * 1024 * 1024;

async function readLines(
  path: string,
  { workingDirectory, inputs, signal }: Pick<Runtime, "workingDirectory" | "inputs" | "signal">,
): Promise<string[]> {
  try {
    const bytes = await inputs.read(resolve(workingDirectory, path), {
      maxBytes: maxEnvironmentBytes,
      signal,
    });
    return utf8Text(bytes)
      .replace(/^\uFEFF/, "")
      .split(/\r?\n/);
  } catch (error) {
    signal.throwIfAborted();
    throw new BoughError(`cannot read --env-file ${path}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}

/**
 * Replaces secrets in `--env KEY=VALUE` by `--env KEY` and a variable in the environment, since all users of the machine can see a command
 * line while it runs. `given`: the values of `--env`. `commandLength`: the number of words at the end that are the command.
 */
export function secretsByEnvironment(
  given: readonly string[],
  env: Readonly<Record<string, string>>,
  commandLength: number,
): { environment: Record<string, string>; rewrite: (words: readonly string[]) => string[] } {
  const secrets = secretsAmong(Object.entries(env));
  const names = new Map(
    given.flatMap((text): [string, string][] => {
      const [name, value] = splitPair(text);
      return value !== undefined && secrets.has(name) ? [[text, name]] : [];
    }),
  );
  return {
    environment: Object.fromEntries([...names.values()].map((name) => [name, env[name] ?? ""])),
    rewrite(words) {
      const own = words.slice(0, words.length - commandLength);
      // The value follows its option, or is in one word with it: `--env=KEY=VALUE`, `-eKEY=VALUE`.
      const rewritten = own.map((word) => {
        const text = [...names.keys()].find((text) => word.endsWith(text));
        return text === undefined ? word : `${word.slice(0, -text.length)}${names.get(text)}`;
      });
      return [...rewritten, ...words.slice(own.length)];
    },
  };
}
