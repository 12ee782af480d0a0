import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import { type ArgumentDefinitions, positiveInteger, type Values } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { connect } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { runDetached } from "./detached.ts";
import { readEnvironment } from "./environment.ts";
import { parseFileArgument } from "./file-argument.ts";
import { type AskedRun, whichCommand } from "./image-command.ts";
import { refuseInteractiveShell } from "./interactive-shell.ts";
import { limitDefinitions, readLimitOptions } from "./limit-options.ts";
import { networkDefinition, readNetworkMode } from "./network-option.ts";
import { runToItsEnd } from "./to-end.ts";

const definitions: ArgumentDefinitions = {
  disposable: {
    type: "boolean",
    alias: "D",
    description: "Throw the changes away: the session's image stays",
  },
  shell: { type: "boolean", alias: "s", description: "COMMAND is a shell expression, for `sh -c`" },
  env: {
    type: "string",
    alias: "e",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Environment variable; without =VALUE the one that is set here",
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
  "no-config": {
    type: "boolean",
    description: "Without the image's ENV, WORKDIR and USER",
  },
  timeout: {
    type: "string",
    alias: "t",
    valueHint: "SEC",
    description: "Seconds that the command may take (default: 600)",
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
  use: {
    type: "string",
    completes: "image",
    valueHint: "IMAGE",
    description: "Run in this image, as after `bough use IMAGE`",
  },
  network: networkDefinition("the command"),
  detach: {
    type: "boolean",
    alias: "d",
    description: "Print the operation's id and do not wait for its end",
  },
};

export const run: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "run",
      description:
        "Run one command in the session's image: without COMMAND its ENTRYPOINT and CMD. Its output is this command's output, its exit code this one's, and without -D its result the session's new image.",
    },
    args: definitions,
    run: ({ data }) => runCommand(data),
  }),
  examples: [
    ["run -D -- app --version", "and throw the changes away"],
    ["-S work run -- apt-get install -y curl", "the result is the new image of the session `work`"],
    ["run -s -F ./src:/src -- 'cd /src && make | tail -20'", "a shell expression, on local files"],
    ["run --use tag:app:dev", "what that image's ENTRYPOINT and CMD start"],
    ["run --use tag:app:dev -d -- server", "in another image, without waiting: prints the operation's id"],
  ],
  agentNote: [
    "This command is mutating: without -D it moves the session's image (`bough session rollback` takes it back).",
    "There is no terminal: commands that ask get the standard input that is piped in, else none.",
    "COMMAND is run as it stands: the image's ENTRYPOINT isn't put before it.",
    "A failing command keeps its changes as well; the exit code is the command's own.",
    "Of each output stream 16 MiB arrive at least; what is cut off is said to be. For more, write a file and `bough cp` it.",
  ].join("\n"),
  takesRest: true,
};

async function runCommand(invocation: Invocation): Promise<number> {
  const { runtime, globals, log } = invocation;
  const request = readRequest(invocation);
  if (invocation.values.flag("detach")) return await runDetached(request, invocation);
  // What the command says is the output: the service's name would stand in between.
  const connection = await connect(runtime, globals, { ...log, info: log.debug });
  try {
    return await runToItsEnd(request, invocation, connection);
  } finally {
    await connection.close();
  }
}

function readRequest(invocation: Invocation): AskedRun {
  const { values, runtime } = invocation;
  const cwd = values.text("cwd");
  if (cwd?.startsWith("/") === false) {
    throw new BoughError(`--cwd takes an absolute path in the image, not ${JSON.stringify(cwd)}`, {
      kind: "usage",
    });
  }
  return {
    key: sessionKey(invocation),
    use: values.text("use"),
    command: readCommand(values, runtime.stdin.isTerminal),
    env: readEnvironment(values.list("env"), runtime.environment),
    cwd,
    user: values.text("user"),
    ignoresConfig: values.flag("no-config"),
    timeoutSeconds: positiveInteger(values.text("timeout"), "--timeout", "It counts seconds.") ?? 600,
    limits: readLimitOptions(values),
    files: values.list("file").map(parseFileArgument),
    excludes: values.list("file-excludes"),
    network: readNetworkMode(values.text("network")),
    isDisposable: values.flag("disposable"),
  };
}

/** `undefined` where none is given and the image's own may stand in. */
function readCommand(values: Values, isTerminal: boolean): AskedRun["command"] {
  const words = values.rest ?? [];
  const isShell = values.flag("shell");
  refuseInteractiveShell(words, isTerminal);
  if (words.length > 0) return isShell ? { form: "shell", line: words.join(" ") } : { form: "exec", words };
  if (isShell) throw whichCommand("--shell is for one that is given.");
  if (values.flag("no-config")) throw whichCommand("--no-config leaves the image's own out.");
  return undefined;
}
