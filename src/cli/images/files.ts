import { BoughError } from "../../errors.ts";
import { formatMode, octalMode } from "../../image/file-mode.ts";
import { wording } from "../../messages/wording.ts";
import type { ImageFile } from "../../service/images/image-file.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { writeChunks } from "../process/write-error.ts";
import { pathDescription, resolveImagePath, withRunHint } from "../references/image-path.ts";
import { sessionKey } from "../references/session-argument.ts";
import { connectQuietly } from "../service/connection.ts";

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
  needs: "service",
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
        hint: wording`${{ command: "ls", words: [given] }} lists a directory.`,
      });
    }
    await writeChunks(content, runtime);
  }
}

export const ls = command({
  name: "ls",
  description: "List files of an image, without starting anything.",
  args: {
    path: {
      type: "positional",
      completes: "image-path",
      required: false,
      description: `${pathDescription} (default: the session's directory, else /)`,
    },
  },
  needs: "service",
  run: listFiles,
  examples: [
    ["ls /etc", "a directory of the session's image"],
    ["ls app:dev:/usr/local/bin", "of a tagged image"],
    ["ls -q /opt", "names and nothing else"],
  ],
  agentNote: "Cheaper than a `run -- ls`: no operation is started.",
});

/** Returns a file in the form for JSON. */
export function describeFile(file: ImageFile) {
  const { mode, modified } = file;
  return {
    ...file,
    mode: mode === null ? null : octalMode(mode),
    modified: new Date(modified * 1000).toISOString(),
  };
}

async function listFiles(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  await using connection = await connectQuietly(invocation);
  const given = values.positionals[0] ?? ".";
  const { image, path } = await resolveImagePath(given, sessionKey(invocation), connection);
  const listed = await withRunHint(
    given,
    invocation,
    (inImage) => `\`${inImage("ls", "-la", path)}\` lists it by a command in the image.`,
    () => connection.service.listFiles(image, path),
  );
  const files = listed.sort((a, b) => (a.name < b.name ? -1 : 1));
  printResult(invocation, {
    id: files.map(({ name }) => name),
    json: files.map(describeFile),
    table: () => ({
      header: ["MODE", "UID", "GID", "SIZE", "MODIFIED", "NAME"],
      rows: files.map((file) => [
        file.mode === null ? null : formatMode(file.mode, file.type),
        String(file.uid),
        String(file.gid),
        String(file.size),
        new Date(file.modified * 1000).toISOString().slice(0, 19),
        file.target === null ? file.name : { shown: `${file.name} -> ${file.target}`, value: file.name },
      ]),
    }),
  });
}
