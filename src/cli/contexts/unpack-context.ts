import {
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createArchiveTree } from "../../builder/archives/archive-tree.ts";
import { createHashedStream, openPeeked, peekBytes } from "../../builder/archives/open-archive.ts";
import { contentOf } from "../../builder/archives/read-archive.ts";
import type { Decompress } from "../../builder/job.ts";
import { tooLarge } from "../../builder/repositories/git-client.ts";
import { fileTime } from "../../clock.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { keepsModes } from "../../context/file-system/file-system.ts";
import { checkLocalNames, nameCollision } from "../../context/file-system/local-name.ts";
import type { RecordedModes } from "../../context/file-system/recorded-modes.ts";
import { BoughError, usageError } from "../../errors.ts";
import { detectCompression } from "../../image/compression.ts";
import { blockBytes } from "../../image/tar-header.ts";
import { readTar } from "../../image/tar-reader.ts";
import { createPace } from "../../pace.ts";
import type { CopiedEntry } from "../../store/copies.ts";
import { readAtMost, tap } from "../../streams.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { maxDockerfileBytes } from "./dockerfile-file.ts";
import { treeName, writeModes } from "./fetched-tree.ts";
import { cannotKeep, onDisk } from "./kept-contexts.ts";

interface UnpackOptions {
  decompress: Decompress;
  signal: AbortSignal;
  /** The name in messages. */
  name: string;
  /** The maximum size of the content as received, and of all its files together. */
  maxBytes: number;
  /** The phrase for content that is not an archive but a text (default: `a Dockerfile`). */
  textKind?: string | undefined;
}

/**
 * Unpacks an archive, plain or compressed, to `place/tree`. Content that is not an archive is a Dockerfile: it is written to
 * `place/Dockerfile`, and the tree is empty. Returns the SHA-256 and the size of the content.
 */
export async function unpackContext(
  content: AsyncIterable<Uint8Array>,
  place: string,
  unpacking: UnpackOptions,
): Promise<{ sha256: string; bytes: number }> {
  const { name, textKind = "a Dockerfile" } = unpacking;
  const refuse = (problem: string) => refusal(name, problem, textKind);
  let bytes = 0;
  const counted = tap(content, (chunk) => {
    bytes += chunk.byteLength;
    requireSize(bytes, unpacking);
  });
  await using hashed = createHashedStream(counted);
  const peeked = await peekBytes(hashed, blockBytes);
  const { beginning } = peeked;
  onDisk(place, () => mkdirSync(join(place, treeName)));
  if (beginning.byteLength === 0) throw refuse("is empty");
  const isPacked = detectCompression(beginning) !== "none";
  const archive = isPacked || isTar(beginning) ? await openPeeked(peeked, name, unpacking) : undefined;
  if (archive !== undefined) await unpack(archive, place, unpacking);
  else if (isPacked) throw refuse("is compressed, but not a tar archive");
  else if (isTar(beginning)) throw refuse(`is neither a tar archive nor ${textKind}`);
  else if (isWebPage(beginning))
    throw usageError(
      `${name} is a web page, and neither a tar archive nor ${textKind}`,
      "The address of a git repository ends in .git.",
    );
  else
    await writeDockerfile(peeked.whole(), join(place, "Dockerfile"), () =>
      refuse(`is not a tar archive, and too large for ${textKind}`),
    );
  // Data after the archive's end are a part of the content, too.
  return { sha256: await hashed.finish(), bytes };
}

export function requireSize(
  bytes: number,
  { name, maxBytes }: Pick<UnpackOptions, "name" | "maxBytes">,
): void {
  if (bytes <= maxBytes) return;
  const { reason, hint } = tooLarge(maxBytes);
  throw new BoughError(`${name}: ${reason}`, { hint });
}

/** True for a whole block with a zero byte, which no Dockerfile contains. */
function isTar(beginning: Uint8Array): boolean {
  return beginning.byteLength === blockBytes && beginning.includes(0);
}

/** True for HTML, such as the page of a repository that a server sends to browsers. */
function isWebPage(beginning: Uint8Array): boolean {
  return /^\s*<(!doctype|html)\b/i.test(Buffer.from(beginning).toString("latin1"));
}

function refusal(name: string, problem: string, textKind = "a Dockerfile"): BoughError {
  return usageError(
    `${name} ${problem}`,
    `Give a tar archive with the context's files (plain, or compressed by gzip, zstd, bzip2 or xz), or ${textKind}.`,
  );
}

async function writeDockerfile(
  content: AsyncIterable<Uint8Array>,
  path: string,
  tooLarge: () => BoughError,
): Promise<void> {
  const { bytes, isWhole } = await readAtMost(maxDockerfileBytes, content);
  if (!isWhole) throw tooLarge();
  onDisk(dirname(path), () => writeFileSync(path, bytes));
}

const unpackAdvice = "Pack files, directories and links only, with names in UTF-8.";

/**
 * Unpacks an archive. Its files are written to numbered files first, and then linked into the tree: each after its directory, and
 * before any symbolic link exists, so that no link is ever followed.
 */
async function unpack(
  bytes: AsyncIterable<Uint8Array>,
  place: string,
  unpacking: UnpackOptions,
): Promise<void> {
  const { name, signal } = unpacking;
  const contents = join(place, "contents");
  mkdirSync(contents);
  const tree = createArchiveTree(name, unpackAdvice);
  let count = 0;
  let size = 0;
  for await (const entry of readTar(bytes, name)) {
    signal.throwIfAborted();
    // A build context contains no devices or pipes.
    if (entry.type === "other")
      throw new BoughError(
        `${name} contains a ${entry.isDevice ? "device" : "pipe"}: ${displayPath(entry.name)}`,
        { hint: unpackAdvice },
      );
    if (entry.type !== "file") {
      tree.add(entry, undefined);
      continue;
    }
    size += entry.size;
    requireSize(size, unpacking);
    const number = String(count++);
    await writeContent(contentOf(entry), join(contents, number), place);
    tree.add(entry, number);
  }
  const entries = tree.entries();
  const advice = "Pack the context's files under other names, or build it on a system that allows them.";
  for (const { path } of entries) checkLocalNames(path.split("/"), process.platform, advice);
  await createEntries(entries, { root: join(place, treeName), contents, signal, name, advice });
  if (!keepsModes) writeModes(place, modesOf(entries));
  rmSync(contents, { recursive: true });
}

/** Writes a new file that only its owner may read, as BuildKit does with the file of a URL. An entry gets its own mode later. */
export async function writeContent(
  content: AsyncIterable<Uint8Array>,
  path: string,
  place: string,
): Promise<void> {
  const file = onDisk(place, () => openSync(path, "wx", 0o600));
  try {
    for await (const chunk of content)
      for (let written = 0; written < chunk.byteLength; )
        written += onDisk(place, () => writeSync(file, chunk, written));
  } finally {
    closeSync(file);
  }
}

async function createEntries(
  entries: readonly CopiedEntry[],
  {
    root,
    contents,
    signal,
    name,
    advice,
  }: { root: string; contents: string; signal: AbortSignal; name: string; advice: string },
): Promise<void> {
  const pace = createPace(signal);
  const put = (entry: CopiedEntry, write: (path: string) => void) => {
    const path = join(root, entry.path);
    try {
      write(path);
    } catch (error) {
      // The tree was empty, and no two entries have the same name.
      if (errorCode(error) === "EEXIST") throw nameCollision(`${name}: ${entry.path}`, advice);
      if (!archiveFaults.includes(errorCode(error) ?? "")) throw cannotKeep(path, error);
      throw refusal(
        name,
        `contains an entry that can't be written: ${shown(entry.path)}: ${reasonOf(error)}`,
      );
    }
  };
  for (const entry of entries) {
    await pace.step();
    put(entry, (path) => {
      if (entry.type === "directory") mkdirSync(path, { mode: 0o700 });
      if (entry.type !== "file") return;
      linkSync(join(contents, entry.sha256), path);
      if (keepsModes) chmodSync(path, entry.mode);
      utimesSync(path, fileTime(entry.mtime ?? 0), fileTime(entry.mtime ?? 0));
    });
  }
  for (const entry of entries.toReversed()) {
    put(entry, (path) => {
      if (entry.type === "symlink") putLink(entry.target, path);
      // The mode is set last, since it may forbid the owner to add entries.
      if (entry.type === "directory" && keepsModes) chmodSync(path, entry.mode);
    });
  }
}

/** Creates a symbolic link. On systems where not every user may do so, writes its target into a file: see `RecordedModes`. */
function putLink(target: string, path: string): void {
  if (keepsModes) symlinkSync(target, path);
  else writeFileSync(path, target, { flag: "wx" });
}

function modesOf(entries: readonly CopiedEntry[]): RecordedModes {
  return new Map(entries.map((entry) => [entry.path, entry.type === "symlink" ? "link" : entry.mode]));
}

/** Error codes that are the archive's fault: names and links that are too long, empty links, too many links to a file. */
const archiveFaults = ["ENAMETOOLONG", "ENOENT", "EMLINK"];

/** Shortens a path for a message. */
function shown(path: string): string {
  const text = displayPath(path);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
