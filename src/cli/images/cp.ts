import { resolve } from "node:path";
import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError } from "../../errors.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { writeChunks } from "../process/write-chunks.ts";
import { connectQuietly } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { copyDirectory, copyFile } from "./copy-out.ts";
import { pathDescription, resolveImagePath } from "./image-path.ts";
import { withRunHint } from "./run-hint.ts";

export const cp = command({
  name: "cp",
  description: "Copy a file or a directory out of an image, without starting anything.",
  args: {
    source: { type: "positional", completes: "image-path", required: true, description: pathDescription },
    destination: {
      type: "positional",
      completes: "file",
      required: true,
      description: "A local path, as for cp -r; - writes a tar archive to standard output",
    },
  },
  run: copyOut,
  examples: [
    ["cp /etc/os-release .", "a file of the session's image"],
    ["cp app:dev:/srv/site ./site", "a directory of a tagged image; with /. at its end, only its contents"],
    ["cp /var/log - | tar -t", "as a tar archive"],
  ],
  agentNote: "To copy files into an image, use `run -F HOST:PATH`, or COPY in a build.",
});

async function copyOut(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  const [source = "", destination = ""] = values.positionals;
  if (destination.includes(":/") && !source.includes(":/"))
    throw new BoughError("files are copied out of an image, not into one", {
      kind: "usage",
      hint: "To run a command with local files: `bough run -F FILE:PATH IMAGE COMMAND`.",
    });
  if (destination === "-" && runtime.stdout.isTerminal)
    throw new BoughError("an archive cannot be written to a terminal", {
      kind: "usage",
      hint: "Name a directory, or redirect it: `... > files.tar`, `... | tar -t`.",
    });
  await using connection = await connectQuietly(invocation);
  const { service } = connection;
  const place = await resolveImagePath(source, sessionKey(invocation), connection);
  const { path } = place;
  const hintFor = (inImage: (...command: string[]) => string) =>
    [
      "By a command in the image, a file and a directory's archive:",
      `  ${inImage("cat", path)} > FILE`,
      `  ${inImage("tar", "-cf", "-", "-C", path, ".")} > FILE.tar`,
    ].join("\n");
  const copied = await withRunHint(source, invocation, hintFor, async () => {
    if (destination === "-") {
      await writeChunks(await service.openArchive(place.image, path), runtime);
      return undefined;
    }
    const local = resolve(runtime.workingDirectory, destination);
    const to = { local, endsWithSlash: destination.endsWith("/") };
    const content = await service.openFile(place.image, path);
    return content === undefined
      ? copyDirectory(place, to, service, invocation)
      : copyFile(content, place, to, service, invocation);
  });
  if (copied === undefined) return;
  log.info(
    `copied ${formatCount(copied.files, "file")} (${formatBytes(copied.bytes)}) to ${displayPath(copied.path)}`,
  );
  printResult(invocation, { id: copied.path, json: copied, table: () => "" });
}
