import { quote } from "../../builder/commands/command.ts";
import { BoughError } from "../../errors.ts";
import { timeoutOption, type Values } from "../command-line/arguments.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { connectQuietly } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { runDetached } from "./detached.ts";
import { type AskedRun, whichCommand } from "./image-command.ts";
import { refuseInteractiveShell } from "./interactive-shell.ts";
import { readScript } from "./script.ts";
import { readFailedStep, readSurroundings, surroundingsDefinitions } from "./surroundings-options.ts";
import { requireTerminal, terminalSeconds } from "./terminal.ts";
import { runToItsEnd } from "./to-end.ts";

export const run = command({
  name: "run",
  description:
    "Run a command in an image, or in the session's image; without COMMAND its ENTRYPOINT and CMD. Output and exit code are those of the command. Without -D the result becomes the session's new image.",
  args: {
    disposable: {
      type: "boolean",
      alias: "D",
      description: "Throw the changes away: the session's image stays",
    },
    tty: {
      type: "boolean",
      alias: ["it", "ti"],
      description: "On this terminal: for a shell, an editor, a debugger; see also `bough shell`",
    },
    interactive: {
      type: "boolean",
      alias: "i",
      description:
        "Accepted as in docker: what is piped in is the command's standard input with or without it",
    },
    script: {
      type: "string",
      refusesEmpty: true,
      completes: "file",
      alias: "I",
      valueHint: "FILE|-",
      description:
        "Run a local script, or the one piped in, by sh or the interpreter in its first line; COMMAND is its arguments",
    },
    shell: { type: "boolean", alias: "s", description: "COMMAND is a shell expression, for `sh -c`" },
    ...surroundingsDefinitions,
    timeout: timeoutOption("Seconds that the command may take (default: 600)"),
    use: {
      type: "string",
      refusesEmpty: true,
      completes: "image",
      valueHint: "IMAGE",
      description: "The same as IMAGE",
    },
    detach: {
      type: "boolean",
      alias: "d",
      description: "Print the operation's id and do not wait for its end",
    },
    image: {
      type: "positional",
      completes: "image",
      required: false,
      description:
        "Run in this image, as after `bough use IMAGE` (default: the session's image; then COMMAND goes after --)",
    },
  },
  run: runCommand,
  examples: [
    ["run -D app:dev app --version", "a command in an image; its changes are thrown away"],
    ["-S work run -- apt-get install -y curl", "the result is the new image of the session `work`"],
    ["run -s -F ./src:/src -- 'cd /src && make | tail -20'", "a shell expression, on local files"],
    ["run -it app:dev python3", "on this terminal, until it ends"],
    ["run -d app:dev server", "without waiting: prints the operation's id"],
  ],
  agentNote: [
    "This command is mutating: without -D it moves the session's image (`bough session rollback` takes it back).",
    "A command has no terminal without -it, which needs one here; its standard input is what is piped in, else it is empty.",
    "The first word that is not an option is IMAGE; a command for the session's image goes after --.",
    "COMMAND is run as given, without the image's ENTRYPOINT.",
    "The changes of a failing command are kept as well; the exit code is the command's own.",
    "At least 16 MiB of each output stream arrive; a warning says if more was cut off. For more, write a file and `bough cp` it.",
  ].join("\n"),
  takesRest: "behind-place",
  foreignOptions: {
    "--rm": "-D throws the changes away.",
    "--workdir": "-C, --cwd is the working directory.",
    "-w": "-C, --cwd is the working directory.",
    "--publish": "No ports are published: with --network host a command listens on this machine's network.",
    "--name": "Commands have no names: `bough ps` lists ids; with -S KEY the result is that session's image.",
    "--entrypoint": "A COMMAND is run as given, without the image's ENTRYPOINT.",
  },
});

async function runCommand(invocation: Invocation): Promise<number> {
  const request = readRequest(invocation);
  if (invocation.values.flag("detach")) return await runDetached(request, invocation);
  // Quiet, because the command's output is the result: the service's name would be in the middle of it.
  await using connection = await connectQuietly(invocation);
  return await runToItsEnd(request, invocation, connection);
}

function readRequest(invocation: Invocation): AskedRun {
  const { values, runtime } = invocation;
  const hasTerminal = values.flag("tty");
  if (hasTerminal) checkTerminal(invocation);
  const file = values.text("script");
  if (file !== undefined && (hasTerminal || values.flag("shell"))) {
    throw new BoughError(`bough run: --script cannot be used with ${hasTerminal ? "-it" : "--shell"}`, {
      kind: "usage",
    });
  }
  const script = file === undefined ? undefined : readScript(file, runtime);
  return {
    key: sessionKey(invocation),
    place: readFailedStep(values) ?? readPlace(values),
    command:
      script === undefined
        ? readCommand(values, runtime.stdin.isTerminal && !hasTerminal)
        : { form: "exec", words: [...script.words, ...argumentsOfScript(values)] },
    input: script?.text,
    originalWords: file === undefined ? undefined : ["--script", file, ...argumentsOfScript(values)],
    ...readSurroundings(invocation),
    timeoutSeconds:
      positiveInteger(
        values.text("timeout"),
        "--timeout",
        "It takes seconds. For a terminal, write -it in one word.",
      ) ?? (hasTerminal ? terminalSeconds : 600),
    isDisposable: values.flag("disposable"),
    hasTerminal,
  };
}

function checkTerminal({ values, globals, runtime }: Invocation): void {
  const hint = "Leave -it out: what is piped in is the command's standard input.";
  const other = values.flag("detach") ? "-d" : globals.format === "json" ? "-f json" : undefined;
  if (other !== undefined) {
    throw new BoughError(`bough run: -it cannot be used with ${other}, which does not use the terminal`, {
      kind: "usage",
    });
  }
  requireTerminal(runtime, "bough run -it", hint);
}

function readPlace(values: Values): AskedRun["place"] {
  const use = values.text("use");
  const [place] = values.positionals;
  // With --use and --script, the positional words are the script's arguments.
  if (use !== undefined && (place === undefined || values.text("script") !== undefined))
    return { kind: "image", image: use };
  if (place === undefined) return { kind: "session" };
  if (use !== undefined) {
    throw new BoughError(`bough run: two images are given, ${place} and ${use}`, {
      kind: "usage",
      hint: `A command for the image of --use goes after --: bough run --use ${quote(use)} -- ${place} ...`,
    });
  }
  const line = [place, ...(values.rest ?? [])].map(quote).join(" ");
  return {
    kind: "image",
    image: place,
    otherwise: `\`bough images import ${quote(place)}\` may import it. A command for the session's image goes after --: bough run -- ${line}`,
  };
}

function argumentsOfScript(values: Values): readonly string[] {
  const { positionals, rest = [] } = values;
  return values.text("use") === undefined ? rest : [...positionals, ...rest];
}

/** `undefined` if no command is given and the image's own can be used. */
function readCommand(values: Values, isTerminal: boolean): AskedRun["command"] {
  const words = values.rest ?? [];
  const isShell = values.flag("shell");
  refuseInteractiveShell(words, isTerminal);
  if (words.length > 0) return isShell ? { form: "shell", line: words.join(" ") } : { form: "exec", words };
  if (values.flag("failed-step")) throw whichCommand("--failed-step needs one.");
  if (isShell) throw whichCommand("--shell needs one.");
  if (values.flag("no-config")) throw whichCommand("--no-config ignores the image's own.");
  return undefined;
}
