import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { sessionKey } from "../references/session-argument.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import {
  executionDefinitions,
  platformDefinition,
  readExecutionOptions,
  readFailedStep,
  readImagePlatform,
} from "./execution-options.ts";
import { type UnresolvedRun, withSessionState } from "./image-command.ts";
import { resolveStartImage } from "./request.ts";
import { runToEnd } from "./run-to-end.ts";
import { requireTerminal } from "./terminal.ts";

export const shell = command({
  name: "shell",
  description:
    "Open a shell in an image, on this terminal: bash where the image has it, else sh. Without --keep its changes are thrown away.",
  args: {
    image: {
      type: "positional",
      completes: "image",
      required: false,
      description: "An image, or a session to open its image (default: that of the session, see -S)",
    },
    keep: {
      type: "boolean",
      description: "Keep the changes: the result is the session's new image, as with `run`",
    },
    platform: platformDefinition,
    ...executionDefinitions,
  },
  needs: "service",
  run: openShell,
  examples: [
    ["shell app:dev", "look around in an image"],
    ["-S work shell --keep", "work in the session `work`; `session rollback` takes it back"],
    ["shell work", "in the image of the session `work`"],
    ["shell app:dev -u root -F ./src:/src", "as root, with local files in place"],
  ],
  agentNote:
    "It is for people: without a terminal it ends with exit code 2. Give commands to `bough run`, one at a time.",
});

async function openShell(invocation: Invocation): Promise<number> {
  const { values, runtime, globals, log } = invocation;
  requireTerminal(
    runtime,
    "bough shell",
    wording`Give commands to ${{ command: "run" }}, such as: ${{ command: "run", words: ["IMAGE", "ls", "-l", "/"], isLine: true }}`,
  );
  if (globals.format === "json") {
    throw usageError(
      "bough shell: -f json is not supported",
      wording`${{ command: "run", options: [{ option: "format", letter: "f", value: "json" }] }} prints the result of a command.`,
    );
  }
  const step = readFailedStep(values);
  const surroundings = await readExecutionOptions(invocation);
  const isDisposable = !values.flag("keep");
  await using connection = await connectQuietly(invocation);
  const asked: UnresolvedRun = {
    ...(step === undefined
      ? await findSource(invocation, connection)
      : { key: sessionKey(invocation), source: step }),
    ...surroundings,
    command: "shell",
    input: undefined,
    timeout: undefined,
    isDisposable,
    hasTerminal: true,
  };
  if (isDisposable) {
    // A missing image must be reported before the message about changes.
    await resolveStartImage(withSessionState(asked, connection.store), invocation, connection);
    log.info("changes are thrown away when you leave; --keep keeps them");
  }
  return await runToEnd(asked, invocation, connection);
}

/** Resolves the argument: the name of an image or, if there is none, of a session. */
async function findSource(
  invocation: Invocation,
  { service, store }: Connection,
): Promise<Pick<UnresolvedRun, "key" | "source">> {
  const { values } = invocation;
  const [given] = values.positionals;
  const key = sessionKey(invocation);
  const platform = readImagePlatform(values, given);
  if (given === undefined) return { key, source: { kind: "session" } };
  if (platform === undefined && store.sessions.history(given) !== undefined) {
    const image = await service.findImage(given);
    if (image === undefined || image === "unsupported") return { key: given, source: { kind: "session" } };
  }
  return { key, source: { kind: "image", image: given, platform } };
}
