/** Options shared by commands that run something in an image: its environment, user, limits, files and network. */
import { BoughError } from "../../errors.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Invocation } from "../command-line/command.ts";
import { readEnvironment, readEnvironmentFiles } from "./environment.ts";
import { parseFileArgument } from "./file-argument.ts";
import type { AskedRun } from "./image-command.ts";
import { limitDefinitions, readLimitOptions } from "./limit-options.ts";
import { networkDefinition, readNetworkMode } from "./network-option.ts";
import { parseVolume } from "./volume-argument.ts";

export const surroundingsDefinitions: ArgumentDefinitions = {
  env: {
    type: "string",
    alias: "e",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Environment variable; without =VALUE the one that is set here",
  },
  "env-file": {
    type: "string",
    completes: "file",
    valueHint: "FILE",
    multiple: true,
    description: "Variables from a file, one KEY[=VALUE] a line; --env comes before them",
  },
  cwd: {
    type: "string",
    alias: "C",
    valueHint: "PATH",
    description: "Working directory, absolute (default: the image's, else /)",
  },
  user: {
    type: "string",
    alias: "u",
    valueHint: "USER[:GROUP]",
    description: "By name or number (default: the image's, else root)",
  },
  "failed-step": {
    type: "boolean",
    description: "In place of the step that the session's build has failed at: its files, ENV, WORKDIR, USER",
  },
  "no-config": {
    type: "boolean",
    description: "Without the image's ENV, WORKDIR and USER",
  },
  ...limitDefinitions,
  file: {
    type: "string",
    completes: "file",
    alias: "F",
    valueHint: "HOST[:PATH][:uN][:gN][:mMODE]",
    multiple: true,
    description: "Put a file or directory in place first (default PATH: its name, in the working directory)",
  },
  "file-excludes": {
    type: "string",
    valueHint: "PATTERN",
    multiple: true,
    description: "Leave out of directories, beside .git, node_modules and the like",
  },
  volume: {
    type: "string",
    completes: "directory",
    alias: "v",
    valueHint: "DIR:PATH[:ro]",
    multiple: true,
    description: "A directory of this machine itself, on bough's own engine; what is written to it stays",
  },
  network: networkDefinition("the command"),
};

type AskedSurroundings = Pick<
  AskedRun,
  "env" | "cwd" | "user" | "ignoresConfig" | "step" | "limits" | "files" | "excludes" | "volumes" | "network"
>;

export function readSurroundings({ values, runtime }: Invocation): AskedSurroundings {
  const cwd = values.text("cwd");
  if (cwd?.startsWith("/") === false) {
    throw new BoughError(`--cwd takes an absolute path in the image, not ${JSON.stringify(cwd)}`, {
      kind: "usage",
    });
  }
  if (values.flag("failed-step") && (values.positionals.length > 0 || values.text("use") !== undefined)) {
    throw new BoughError("--failed-step runs in that step's image, and takes no other", {
      kind: "usage",
      hint: "The session is named with -S, and a command stands after --: bough -S build:<hash> run --failed-step -- COMMAND",
    });
  }
  return {
    env: {
      ...readEnvironmentFiles(values.list("env-file"), runtime),
      ...readEnvironment(values.list("env"), runtime.environment),
    },
    cwd,
    user: values.text("user"),
    ignoresConfig: values.flag("no-config"),
    step: values.flag("failed-step") ? "latest" : undefined,
    limits: readLimitOptions(values),
    files: values.list("file").map(parseFileArgument),
    excludes: values.list("file-excludes"),
    volumes: values.list("volume").map((text) => parseVolume(text, runtime.workingDirectory)),
    network: readNetworkMode(values.text("network")),
  };
}
