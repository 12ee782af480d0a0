import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Values } from "../command-line/arguments.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { timeoutOption } from "../command-line/definitions.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { sessionKey } from "../references/session-argument.ts";
import { connectQuietly } from "../service/connection.ts";

import { parseTimeout } from "../service/timeout.ts";
import { readScript } from "./command-input.ts";

import { needsBackground, runDetached, startBackgroundProcess } from "./detached.ts";
import {
  executionDefinitions,
  platformDefinition,
  readExecutionOptions,
  readFailedStep,
  readImagePlatform,
} from "./execution-options.ts";
import { missingCommandError, refuseInteractiveShell, type UnresolvedRun } from "./image-command.ts";
import { pullPolicies, readPullPolicy } from "./pull.ts";
import { runToEnd } from "./run-to-end.ts";
import { requireTerminal } from "./terminal.ts";

export const run = command({
  name: "run",
  description:
    "Run an image as docker run does: its ENTRYPOINT, with ARGUMENTs instead of its CMD; changes are thrown away. After --, a command in the session's image, whose result becomes its new image. Output and exit code are those of the command.",
  args: {
    disposable: {
      type: "boolean",
      alias: "D",
      synonyms: ["--rm"],
      description: "Throw the changes away: the session's image stays (default with IMAGE)",
    },
    keep: {
      type: "boolean",
      description:
        "Keep the changes: the result is the session's new image (default without IMAGE, and with -S)",
    },
    entrypoint: {
      type: "string",
      valueHint: "PROGRAM",
      description: "Instead of the image's ENTRYPOINT and CMD; empty: run the arguments as they are",
    },
    tty: {
      type: "boolean",
      alias: ["it", "ti"],
      dockerLetter: "t",
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
    ...executionDefinitions,
    timeout: timeoutOption(
      "Seconds that the command may take; 0: as long as it likes (default on the engine; else 600)",
    ),
    use: {
      type: "string",
      refusesEmpty: true,
      completes: "image",
      valueHint: "IMAGE",
      description: "Run COMMAND in this image as it is, as after `bough use IMAGE`: without its ENTRYPOINT",
    },
    pull: {
      type: "string",
      completes: pullPolicies,
      valueHint: "WHEN",
      description: "Import IMAGE from its registry: missing (default), always or never",
    },
    platform: platformDefinition,
    each: {
      type: "string",
      refusesEmpty: true,
      completes: "file",
      valueHint: "LIST|-",
      description:
        "Run it in each image of a list: names, a line each, the --results of a bake, or what its --print prints. Results are JSON, a line each; exit code 0 if all are",
    },
    jobs: {
      type: "string",
      valueHint: "N",
      description:
        "With --each: commands that run at the same time (default: one per processor on the engine, 4 on a service)",
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
        "Run this image; what follows are arguments of its ENTRYPOINT (default: the session's image; then a COMMAND goes after --)",
    },
  },
  needs: "service",
  run: runCommand,
  examples: [
    ["run app:dev --version", "as docker run: the image's ENTRYPOINT with an argument"],
    ["-S work run -- apt-get install -y curl", "the result is the new image of the session `work`"],
    ["run -s -F ./src:/src -- 'cd /src && make | tail -20'", "a shell expression, on local files"],
    ["run -it app:dev python3", "on this terminal, until it ends"],
    ["run -d app:dev server", "without waiting: prints the operation's id"],
  ],
  agentNote: [
    "`run IMAGE` changes nothing unless -S or --keep is given; `run -- COMMAND` is mutating: without -D it moves the session's image (`bough session rollback` takes it back).",
    "A command has no terminal without -it, which needs one here; its standard input is what is piped in, else it is empty.",
    "The first word that is not an option is IMAGE, what follows are arguments of its ENTRYPOINT (`--entrypoint ''`: a command of its own); a command for the session's image goes after -- and runs as given.",
    "The changes of a failing command are kept as well; the exit code is the command's own.",
    "At least 16 MiB of each output stream arrive; a warning says if more was cut off. For more, write a file and `bough cp` it.",
  ].join("\n"),
  trailingCommand: "behind-place",
  foreign: async () => (await import("../foreign/run-options.ts")).foreignRunOptions,
});

async function runCommand(invocation: Invocation): Promise<number> {
  const list = invocation.values.text("each");
  if (list !== undefined) return await runList(list, invocation);
  if (invocation.values.text("jobs") !== undefined)
    throw usageError(wording`${{ option: "jobs" }} needs ${{ option: "each" }}`);
  const isDetached = invocation.values.flag("detach");
  if (isDetached && needsBackground(invocation))
    return await startBackgroundProcess(await readRunRequest(invocation, { readsInputs: false }), invocation);
  const request = await readRunRequest(invocation, { readsInputs: true });
  if (isDetached) return await runDetached(request, invocation);
  // The service's name is not logged: the command's output is the result, and the line would be in the middle of it.
  await using connection = await connectQuietly(invocation);
  return await runToEnd(request, invocation, connection);
}

/** Runs the command in each image of a list, without input except that of a script. */
async function runList(list: string, invocation: Invocation): Promise<number> {
  const { requireEachOptions: requireEachFits, runEach } = await import("./run-each.ts");
  requireEachFits(invocation);
  const { values } = invocation;
  const request = await readRunRequest(invocation, { readsInputs: true });
  const pull = readPullPolicy(values.text("pull")) ?? "missing";
  const source = { kind: "image", image: "", pull, platform: readImagePlatform(values, list) } as const;
  const input = request.input ?? new Uint8Array();
  const jobs = positiveInteger(values.text("jobs"), "--jobs", "It is a number of commands, as in --jobs 4.");
  return await runEach(list, { ...request, source, input, isDisposable: true }, jobs, invocation);
}

/** Reads the request. `readsInputs`: false if another process reads the files and pipes that it names. */
async function readRunRequest(
  invocation: Invocation,
  { readsInputs }: { readsInputs: boolean },
): Promise<UnresolvedRun> {
  const { values, runtime } = invocation;
  const hasTerminal = values.flag("tty");
  if (hasTerminal) checkTerminal(invocation);
  const file = values.text("script");
  if (file !== undefined && (hasTerminal || values.flag("shell"))) {
    throw usageError(`bough run: --script cannot be used with ${hasTerminal ? "-it" : "--shell"}`);
  }
  const script =
    file === undefined || !readsInputs ? undefined : await readScript(file, runtime, invocation.log);
  const source = readFailedStep(values) ?? readSource(values);
  return {
    key: sessionKey(invocation),
    source,
    command:
      file === undefined
        ? readCommand(values, runtime.stdin.isTerminal && !hasTerminal)
        : { form: "exec", words: [...(script?.words ?? []), ...argumentsOfScript(values)] },
    input: script?.text,
    originalWords: file === undefined ? undefined : ["--script", file, ...argumentsOfScript(values)],
    ...(await readExecutionOptions(invocation, { readsFiles: readsInputs })),
    timeout: parseTimeout(values.text("timeout"), "It takes seconds. For a terminal, write -it in one word."),
    isDisposable: isDisposable(invocation, source),
    hasTerminal,
  };
}

function checkTerminal({ values, globals, runtime }: Invocation): void {
  const hint = "Leave -it out: what is piped in is the command's standard input.";
  const other = values.flag("detach") ? "-d" : globals.format === "json" ? "-f json" : undefined;
  if (other !== undefined) {
    throw usageError(`bough run: -it cannot be used with ${other}, which does not use the terminal`);
  }
  requireTerminal(runtime, "bough run -it", hint);
}

/** True if the changes are thrown away: as in docker, a run of an image keeps nothing, unless a session is named. */
function isDisposable({ values, globals, runtime }: Invocation, source: UnresolvedRun["source"]): boolean {
  const [isThrown, isKept] = [values.flag("disposable"), values.flag("keep")];
  if (isThrown && isKept)
    throw usageError(wording`${{ option: "keep" }} and -D cannot be used together`, "Leave one of them out.");
  const isOwn = source.kind === "image" && values.text("use") === undefined;
  const session = globals.session ?? (runtime.environment.BOUGH_SESSION || undefined);
  return isThrown || (isOwn && !isKept && session === undefined);
}

function readSource(values: Values): UnresolvedRun["source"] {
  const use = values.text("use");
  const asked = readPullPolicy(values.text("pull"));
  const [first] = values.positionals;
  const platform = readImagePlatform(values, use ?? first ?? values.text("each"));
  // With --use and --script, the positional words are the script's arguments.
  if (use !== undefined && (first === undefined || values.text("script") !== undefined))
    return { kind: "image", image: use, pull: asked ?? "never", platform };
  if (first === undefined) return { kind: "session" };
  if (use !== undefined) {
    throw usageError(
      `bough run: two images are given, ${first} and ${use}`,
      wording`A command for the image of ${{ option: "use" }} goes after --: ${{ command: "run", options: [{ option: "use", value: use }], words: ["--", first, "..."], isLine: true }}`,
    );
  }
  const words = ["--", first, ...(values.rest ?? [])];
  return {
    kind: "image",
    image: first,
    pull: asked ?? "missing",
    platform,
    fallbackHint: wording`A command for the session's image goes after --: ${{ command: "run", words, isLine: true }}`,
  };
}

function argumentsOfScript(values: Values): readonly string[] {
  const { positionals, rest = [] } = values;
  return values.text("use") === undefined ? rest : [...positionals, ...rest];
}

function readCommand(values: Values, isTerminal: boolean): UnresolvedRun["command"] {
  const words = values.rest ?? [];
  const isShell = values.flag("shell");
  const entrypoint = values.text("entrypoint");
  if (entrypoint !== undefined && isShell)
    throw usageError(
      wording`${{ option: "entrypoint" }} and ${{ option: "shell" }} cannot be used together`,
      "Leave one of them out.",
    );
  const usesImageCommand = entrypoint !== undefined || (values.positionals.length > 0 && !isShell);
  if (usesImageCommand && words.length > 0) return { form: "image", entrypoint, args: words };
  refuseInteractiveShell(words, isTerminal);
  if (words.length > 0) return isShell ? { form: "shell", line: words.join(" ") } : { form: "exec", words };
  if (values.flag("failed-step")) throw missingCommandError(wording`${{ option: "failed-step" }} needs one.`);
  if (isShell) throw missingCommandError(wording`${{ option: "shell" }} needs one.`);
  if (values.flag("no-config") && !entrypoint)
    throw missingCommandError(wording`${{ option: "no-config" }} ignores the image's own.`);
  return { form: "image", entrypoint, args: [] };
}
