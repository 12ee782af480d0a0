import { lstatSync, mkdirSync, type Stats, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, posix, resolve, sep } from "node:path";
import { openEntries } from "../../builder/operations/image-entries.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { checkLocalNames } from "../../context/file-system/local-name.ts";
import { BoughError, usageError } from "../../errors.ts";
import { openTemporaryFile } from "../../image/temporary-file.ts";
import type { Service } from "../../service/client.ts";
import { reasonOf } from "../../system-error.ts";
import { formatBytes, formatCount } from "../../terminal/quantity.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { cannotWrite, writeChunks } from "../process/write-error.ts";
import { type ImagePath, pathDescription, resolveImagePath, withRunHint } from "../references/image-path.ts";
import { sessionKey } from "../references/session-argument.ts";
import { connectQuietly } from "../service/connection.ts";
import {
  type ExtractOptions,
  type ExtractResult,
  extractArchive,
  localNameAdvice,
  refuseFile,
} from "./extract.ts";

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
  needs: "service",
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
    throw usageError(
      "files are copied out of an image, not into one",
      "To run a command with local files: `bough run -F FILE:PATH IMAGE COMMAND`.",
    );
  if (destination === "-" && runtime.stdout.isTerminal)
    throw usageError(
      "an archive cannot be written to a terminal",
      "Name a directory, or redirect it: `... > files.tar`, `... | tar -t`.",
    );
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
    const to = { local, endsWithSlash: destination.endsWith("/") || destination.endsWith(sep) };
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

/** The destination of a copy on this machine. */
interface LocalDestination {
  /** Absolute. */
  local: string;
  /** True if the user wrote it as a directory. */
  endsWithSlash: boolean;
}

/** The result of a copy with its destination. */
interface CopyResult extends ExtractResult {
  path: string;
}

/**
 * Copies to a temporary name and renames the complete file, so that no reader sees part of it. A link at the destination is
 * replaced.
 */
async function copyFile(
  content: ReadableStream<Uint8Array>,
  { image, path }: ImagePath,
  { local, endsWithSlash }: LocalDestination,
  service: Service,
  { runtime }: Invocation,
): Promise<CopyResult> {
  const isDirectory = statsOf(local)?.isDirectory() === true;
  if (!isDirectory && endsWithSlash) throw usageError(`${local} is not a directory`);
  const name = posix.basename(path);
  if (isDirectory) checkLocalNames([name], runtime.platform, localNameAdvice);
  const to = isDirectory ? join(local, name) : local;
  try {
    // Only the listing has the mode.
    const [listed] = await service.listFiles(image, path);
    const mode = listed?.type === "file" && listed.mode !== null ? listed.mode & 0o777 : 0o666;
    using temporary = openTemporaryFile(dirname(to), mode);
    const bytes = await writeTo(temporary.path, content, runtime.signal);
    temporary.keep(to);
    return { path: to, files: 1, bytes };
  } catch (error) {
    await content.cancel().catch(() => undefined);
    throw runtime.signal.aborted ? error : cannotWrite(to, error);
  }
}

/** Writes the content to an existing file. Returns the number of bytes. */
async function writeTo(
  path: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  await using file = await open(path, "r+");
  let bytes = 0;
  for await (const chunk of content) {
    signal.throwIfAborted();
    bytes += chunk.byteLength;
    await file.writeFile(chunk);
  }
  return bytes;
}

/** Copies a directory as `cp -r` does: into the destination if that exists, else under the destination's name. */
export async function copyDirectory(
  { image, path, meansContents }: ImagePath,
  { local }: LocalDestination,
  service: Service,
  { runtime, log }: Surroundings,
  options: Pick<ExtractOptions, "style" | "time" | "shared"> = { style: "plain" },
): Promise<CopyResult> {
  const entries = await openEntries(service, image, path);
  const stats = statsOf(local);
  refuseFile(local, stats, path);
  const name = posix.basename(path);
  const isNamed = stats !== undefined && !meansContents;
  if (isNamed) checkLocalNames([name], runtime.platform, localNameAdvice);
  const to = isNamed ? join(local, name) : local;
  createRoot(to, to === local);
  const extracted = await extractArchive(entries, to, {
    ...options,
    signal: runtime.signal,
    platform: runtime.platform,
    warn: log.warn,
  });
  return { path: to, ...extracted };
}

/** Creates the directory. The path that the user gave may be a link, but a link below it, which may come from an image, is refused. */
function createRoot(path: string, mayBeLink: boolean): void {
  try {
    const stats = mayBeLink ? statsOf(path) : lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isSymbolicLink() === true) {
      throw new BoughError(`${displayPath(path)} already exists and is a link, which is not followed`, {
        hint: "Remove it, or give its target if you trust it.",
      });
    }
    if (stats?.isDirectory() !== true) mkdirSync(path);
  } catch (error) {
    if (error instanceof BoughError) throw error;
    throw new BoughError(`cannot create ${displayPath(path)}: ${reasonOf(error)}`, {
      hint: `Check that the directory ${displayPath(dirname(path))} exists.`,
      cause: error,
    });
  }
}

/** Returns `undefined` for a missing file and for a dangling link. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new BoughError(`cannot use ${displayPath(path)}: ${reasonOf(error)}`, { cause: error });
  }
}
