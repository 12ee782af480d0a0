import { posix } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { quote } from "../../programs/quote.ts";
import type { Service } from "../../service/client.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { splitPair } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { findDescription, requireSessionImage } from "../references/image-argument.ts";
import { sessionKey } from "../references/session-argument.ts";
import { connectQuietly, openLocalStore } from "../service/connection.ts";

export const cd = command({
  name: "cd",
  description:
    "Set the directory in which commands of the session begin, and from which paths in its image are read; without one, show it.",
  args: {
    directory: {
      type: "positional",
      required: false,
      description: "A directory of the session's image, also relative to the present one (default: show it)",
    },
  },
  needs: "service",
  run: changeDirectory,
  examples: [
    ["-S work cd /app", "`bough -S work run -- make` runs in /app"],
    ["-S work cd ../srv", "relative to the present one"],
    ["-S work cd", "which one it is"],
  ],
  agentNote:
    "It holds for `run -- COMMAND`, `shell`, `ls`, `cat` and `cp` in the session's image, not for `run IMAGE`; `run -C PATH` sets another one for one command.",
});

async function changeDirectory(invocation: Invocation): Promise<void> {
  const [given] = invocation.values.positionals;
  const key = sessionKey(invocation);
  await using connection = await connectQuietly(invocation);
  const { store, service } = connection;
  const image = requireSessionImage(store, key);
  const present =
    store.surroundings.get(key).directory ??
    ((await findDescription(image, connection)).config.WorkingDir || "/");
  const directory = given === undefined ? present : posix.resolve("/", present, given);
  if (given !== undefined) {
    await requireDirectory(service, image, directory);
    store.surroundings.setDirectory(key, directory);
  }
  printResult(invocation, {
    id: directory,
    json: { session: key, directory },
    table: () => `${visible(directory)}\n`,
  });
}

async function requireDirectory(service: Service, image: string, directory: string): Promise<void> {
  const type = await service.pathType(image, directory);
  // If the service can't list files, the directory is taken to exist.
  if (type === "directory" || type === "unsupported") return;
  throw new BoughError(
    `the session's image has no directory ${visible(directory)}${type === undefined ? "" : ": it is a file"}`,
    {
      hint: wording`${{ command: "ls" }} lists directories; ${{ command: "run", words: ["--", "mkdir", "-p", "PATH"] }} makes one.`,
    },
  );
}

export const env = command({
  name: "env",
  description: "Set environment variables for the commands of a session; without any, list them.",
  args: {
    variable: {
      type: "positional",
      required: false,
      multiple: true,
      description: "Variables to set, each KEY=VALUE (default: list those that are set)",
    },
    unset: {
      type: "string",
      refusesEmpty: true,
      multiple: true,
      alias: "u",
      synonyms: ["-d", "--delete"],
      valueHint: "KEY",
      description: "Remove a variable from the session; the image's own holds again",
    },
  },
  run: changeVariables,
  examples: [
    ["-S work env DEBUG=1 LANG=C", "each `bough -S work run -- COMMAND` has them"],
    ["-S work env -u DEBUG", "no more"],
    ["-S work env", "which are set"],
  ],
  agentNote:
    "They are stored on this machine, in the state directory, readable to you alone, and hold for `run -- COMMAND` and `shell` in the session's image. `run -e KEY=VALUE` overrides them.",
});

function changeVariables(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const unset = values.list("unset");
  const set = Object.fromEntries(values.positionals.map(readVariable));
  const key = sessionKey(invocation);
  using store = openLocalStore(runtime, globals);
  requireSessionImage(store, key);
  if (values.positionals.length > 0 || unset.length > 0) store.surroundings.changeVariables(key, set, unset);
  const { variables } = store.surroundings.get(key);
  const rows = Object.entries(variables).sort(([one], [other]) => (one < other ? -1 : 1));
  printResult(invocation, {
    id: rows.map(([name, value]) => `${name}=${value}`),
    json: variables,
    table: () => ({ header: ["VARIABLE", "VALUE"], rows: rows }),
  });
}

function readVariable(text: string): [name: string, value: string] {
  const [name, value] = splitPair(text);
  if (name !== "" && value !== undefined) return [name, value];
  throw usageError(
    `bough env takes KEY=VALUE, not ${JSON.stringify(text)}`,
    name === "" ? "The name is missing." : `To remove a variable: bough env -u ${quote(text)}`,
  );
}
