import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { findDescription } from "../references/description.ts";
import { requireSessionImage } from "../references/image-argument.ts";
import { sessionKey } from "../references/session-argument.ts";
import { connectQuietly } from "../service/connection.ts";

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
  // A service that does not show files is believed to have it.
  if (type === "directory" || type === "unsupported") return;
  throw new BoughError(
    `the session's image has no directory ${visible(directory)}${type === undefined ? "" : ": it is a file"}`,
    { hint: "`bough ls` lists directories; `bough run -- mkdir -p PATH` makes one." },
  );
}
