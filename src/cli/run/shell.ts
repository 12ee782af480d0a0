import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { sessionKey } from "../references/session-argument.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import { type AskedRun, withStored } from "./image-command.ts";
import { startImage } from "./request.ts";
import {
  platformDefinition,
  readFailedStep,
  readImagePlatform,
  readSurroundings,
  surroundingsDefinitions,
} from "./surroundings-options.ts";
import { requireTerminal } from "./terminal.ts";
import { runToItsEnd } from "./to-end.ts";

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
    ...surroundingsDefinitions,
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
  const surroundings = await readSurroundings(invocation);
  const isDisposable = !values.flag("keep");
  await using connection = await connectQuietly(invocation);
  const asked: AskedRun = {
    ...(step === undefined
      ? await findPlace(invocation, connection)
      : { key: sessionKey(invocation), place: step }),
    ...surroundings,
    command: "shell",
    input: undefined,
    timeout: undefined,
    isDisposable,
    hasTerminal: true,
  };
  if (isDisposable) {
    // Checks first that the image exists.
    await startImage(withStored(asked, connection.store), invocation, connection);
    log.info("changes are thrown away when you leave; --keep keeps them");
  }
  return await runToItsEnd(asked, invocation, connection);
}

/** Resolves the argument. A name that is not an image's may be a session's. */
async function findPlace(
  invocation: Invocation,
  { service, store }: Connection,
): Promise<Pick<AskedRun, "key" | "place">> {
  const { values } = invocation;
  const [given] = values.positionals;
  const key = sessionKey(invocation);
  const platform = readImagePlatform(values, given);
  if (given === undefined) return { key, place: { kind: "session" } };
  if (platform === undefined && store.sessions.history(given) !== undefined) {
    const image = await service.findImage(given);
    if (image === undefined || image === "unsupported") return { key: given, place: { kind: "session" } };
  }
  return { key, place: { kind: "image", image: given, platform } };
}
