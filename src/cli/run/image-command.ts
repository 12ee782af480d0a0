import { posix } from "node:path";
import type { ExpandedCommand } from "../../builder/commands/command.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type BoughError, usageError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { quote } from "../../programs/quote.ts";
import type { Surroundings } from "../command-line/command.ts";
import { findDescription } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";
import { findTimeout, type Timeout } from "../service/timeout.ts";
import { requireFailedStep } from "./failed-step.ts";
import type { RunRequest, RunSource } from "./request.ts";

/** A run as the command line requests it. */
export interface UnresolvedRun extends Omit<RunRequest, "command" | "title" | "source" | "timeoutSeconds"> {
  /** `"shell"` for a shell of the image. */
  command: ExpandedCommand | ImageCommand | "shell";
  timeout: Timeout;
  source: RunSource | LatestFailedStep;
  /** The user's words if the command differs from them: a script and its arguments. */
  originalWords?: readonly string[] | undefined;
}

/** The image's own command, as `docker run` changes it. */
interface ImageCommand {
  form: "image";
  /** Replaces the image's ENTRYPOINT and CMD. */
  entrypoint: string | undefined;
  /** Replace the image's CMD. */
  args: readonly string[];
}

/** The defaults of a run: all but its session, its source and its command. */
export const runDefaults: Omit<UnresolvedRun, "key" | "source" | "command"> = {
  ...{ env: {}, cwd: undefined, user: undefined, ignoresConfig: false, hostname: undefined },
  ...{ limits: undefined, timeout: undefined, network: "default", hosts: [] },
  ...{ files: [], excludes: [], volumes: [], input: undefined },
  ...{ isDisposable: false, hasTerminal: false },
};

/** The failed step of the session's latest build. */
export interface LatestFailedStep {
  kind: "latest step";
}

/** A run with its failed step resolved, or with the directory and variables of its session. */
export type ResolvedRun = UnresolvedRun & Pick<RunRequest, "source">;

/** Adds state of the session: the failed step, or the directory and variables if the run starts from the session's image. */
export function withSessionState(asked: UnresolvedRun, store: Connection["store"]): ResolvedRun {
  const { source, key } = asked;
  if (source.kind === "latest step")
    return { ...asked, source: { kind: "step", step: requireFailedStep(key, store) } };
  if (source.kind !== "session") return { ...asked, source };
  const { directory, variables } = store.surroundings.get(key);
  return { ...asked, source, cwd: asked.cwd ?? directory, env: { ...variables, ...asked.env } };
}

/** Resolves the command, which may be the image's ENTRYPOINT and CMD, and the timeout. */
export async function withCommand(
  asked: ResolvedRun,
  image: string,
  invocation: Surroundings,
  connection: Connection,
): Promise<RunRequest> {
  const command = await findCommand(asked, image, invocation.runtime.stdin.isTerminal, connection);
  const title = asked.originalWords?.map(quote).join(" ") ?? titleOf(command);
  const timeoutSeconds = await findTimeout(asked, invocation, connection.service);
  return { ...asked, command, timeoutSeconds, title: secretsAmong(Object.entries(asked.env)).mask(title) };
}

async function findCommand(
  { command, hasTerminal }: UnresolvedRun,
  image: string,
  isTerminal: boolean,
  connection: Connection,
): Promise<ExpandedCommand> {
  if (command === "shell") return findShell(image, connection);
  return command.form === "image"
    ? findImageCommand(command, image, isTerminal && !hasTerminal, connection)
    : command;
}

/** @param why a sentence with the reason why there is no command */
export function missingCommandError(why: Message): BoughError {
  return usageError(
    wording`${{ command: "run", isLine: true }}: no command given. ${why}`,
    wording`Give it after IMAGE or --, as in: ${{ command: "run", words: ["app:dev", "ls", "-l", "/"], isLine: true }}`,
  );
}

/** Combines ENTRYPOINT and CMD as Docker does, which ignores an ENTRYPOINT of one empty word. */
async function findImageCommand(
  { entrypoint, args }: ImageCommand,
  image: string,
  isTerminal: boolean,
  connection: Connection,
): Promise<ExpandedCommand> {
  const { Entrypoint = [], Cmd = [] } = (await findDescription(image, connection)).config;
  const program = entrypoint === undefined ? Entrypoint : [entrypoint];
  const isReset = program.length === 1 && program[0] === "";
  const defaults = entrypoint === undefined ? Cmd : [];
  const words = [...(isReset ? [] : program), ...(args.length > 0 ? args : defaults)];
  const [first] = words;
  if (first === undefined)
    throw entrypoint === undefined
      ? missingCommandError(
          wording`The image has neither ENTRYPOINT nor CMD: ${{ command: "build", options: [{ option: "docker" }] }} keeps those of a Dockerfile.`,
        )
      : missingCommandError(
          wording`An empty ${{ option: "entrypoint" }} leaves the image without its ENTRYPOINT and CMD.`,
        );
  if (first === "")
    throw missingCommandError(
      `${args[0] === "" ? "The given command" : "The image's own command"} begins with an empty word.`,
    );
  if (first === args[0] && first.startsWith("-"))
    throw usageError(
      wording`${{ command: "run", isLine: true }}: ${first} is given where the command is expected: the image has no ENTRYPOINT that would take it`,
      "Options of bough go before IMAGE.",
    );
  refuseInteractiveShell(words, isTerminal);
  return { form: "exec", words };
}

/** Returns bash, which people expect at a prompt, if the image has it, else sh. */
async function findShell(image: string, { service }: Connection): Promise<ExpandedCommand> {
  for (const path of ["/bin/bash", "/usr/bin/bash"]) {
    const type = await service.pathType(image, path);
    if (type === "unsupported") break;
    if (type === "file" || type === "symlink") return { form: "exec", words: ["bash"] };
  }
  return { form: "exec", words: ["sh"] };
}

function titleOf(command: ExpandedCommand): string {
  switch (command.form) {
    case "shell":
      return command.line;
    case "exec":
      return command.words.map(quote).join(" ");
    case "none":
      return "";
  }
}

const shells: readonly string[] = ["sh", "ash", "bash", "dash", "fish", "ksh", "zsh"];
/** Options of shells that name no command to run. */
const optionsWithoutCommand = /^(-[il]+|--login|--interactive)$/;

/**
 * Throws if the command is a shell without anything to run, and the user is at a terminal: without a terminal of its own the shell would
 * end immediately with exit code 0, which the user does not expect.
 */
export function refuseInteractiveShell(words: readonly string[], isTerminal: boolean): void {
  const [program = "", ...args] = words;
  const isIdle = args.every((arg) => optionsWithoutCommand.test(arg));
  if (!isTerminal || !isIdle || !shells.includes(posix.basename(program))) return;
  throw usageError(
    `without -it ${program} has no terminal, and would end immediately`,
    wording`${wording`${{ command: "run", options: [{ option: "tty", letter: "it" }], isLine: true }} gives it this one, and so does ${{ command: "shell" }}.`} Or give it something to do: ${{ command: "run", words: ["--"], isLine: true }} ${program} -c 'COMMAND'`,
  );
}
