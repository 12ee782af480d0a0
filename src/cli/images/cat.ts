import { BoughError } from "../../errors.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { writeChunks } from "../process/write-chunks.ts";
import { connectQuietly } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { pathDescription, resolveImagePath } from "./image-path.ts";
import { withRunHint } from "./run-hint.ts";

export const cat = command({
  name: "cat",
  description: "Print files of an image, byte for byte, without starting anything.",
  args: {
    path: {
      type: "positional",
      completes: "image-path",
      required: true,
      multiple: true,
      description: pathDescription,
    },
  },
  run: printFiles,
  examples: [
    ["cat /etc/os-release", "of the session's image"],
    ["cat app:dev:/usr/local/bin/app | sha256sum", "of a tagged image"],
  ],
  agentNote: "Cheaper than a `run -- cat`: no operation is started, and nothing is cut off.",
});

async function printFiles(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  await using connection = await connectQuietly(invocation);
  for (const given of values.positionals) {
    const { image, path } = await resolveImagePath(given, sessionKey(invocation), connection);
    const content = await withRunHint(
      given,
      invocation,
      (inImage) => `\`${inImage("cat", path)}\` prints it by a command in the image.`,
      () => connection.service.openFile(image, path),
    );
    if (content === undefined) {
      throw new BoughError(`${path} is not a regular file`, {
        hint: `\`bough ls ${given}\` lists a directory.`,
      });
    }
    await writeChunks(content, runtime);
  }
}
