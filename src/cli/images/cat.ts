import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { connectQuietly } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { pathDescription, resolveImagePath } from "./image-path.ts";

const definitions: ArgumentDefinitions = {
  path: {
    type: "positional",
    completes: "image-path",
    required: true,
    multiple: true,
    description: pathDescription,
  },
};

export const cat: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "cat", description: "Print files of an image, byte for byte, without starting anything." },
    args: definitions,
    run: ({ data }) => printFiles(data),
  }),
  examples: [
    ["cat /etc/os-release", "of the session's image"],
    ["cat app:dev:/usr/local/bin/app | sha256sum", "of a tagged image"],
  ],
  agentNote: "Cheaper than a `run -- cat`: no operation is started, and nothing is cut off.",
};

async function printFiles(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  await using connection = await connectQuietly(invocation);
  const { stdout, signal } = runtime;
  for (const given of values.positionals) {
    const { image, path } = await resolveImagePath(given, sessionKey(invocation), connection);
    const content = await connection.service.openFile(image, path);
    if (content === undefined) {
      throw new BoughError(`${path} is no regular file`, {
        hint: `\`bough ls ${given}\` lists a directory.`,
      });
    }
    for await (const chunk of content) {
      signal.throwIfAborted();
      stdout.write(chunk);
      await stdout.flush();
    }
  }
}
