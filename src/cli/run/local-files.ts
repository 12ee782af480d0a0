import { realpathSync, statSync } from "node:fs";
import { basename, posix, resolve } from "node:path";
import { addStaged, type Staged, type StagedEntry } from "../../builder/state/staged.ts";
import { openBuildContext } from "../../context/build-context.ts";
import { isMissing } from "../../context/file-system/file-error.ts";
import { localFileSystem, localPath } from "../../context/file-system/file-system.ts";
import { hashFiles } from "../../context/hashing/hash.ts";
import { ignoreRules } from "../../context/patterns/ignore.ts";
import type { ContextEntry, FileEntry } from "../../context/sources/entry.ts";
import { entryOf } from "../../context/sources/entry-of.ts";
import { resolveSources } from "../../context/sources/sources.ts";
import { BoughError, usageError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { type HostFile, HostFiles } from "../../service/wire/file.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import { reasonOf } from "../../system-error.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { FailedStep } from "./failed-step.ts";
import type { FileArgument } from "./file-argument.ts";

interface LocalFilesOptions {
  workingDirectory: string;
  /** The command's working directory in the instance. */
  cwd: string;
  /** Patterns to leave out of directories, in addition to the default excludes. */
  excludes: readonly string[];
  signal: AbortSignal;
  warn: (message: Message) => void;
}

/** Finds and hashes the files of all `--file` options. */
export async function stageLocalFiles(
  files: readonly FileArgument[],
  options: LocalFilesOptions,
): Promise<Staged> {
  let staged: Staged = new Map();
  for (const file of files) {
    const { isDirectory, entries } = await findEntries(file, options);
    const hashes = await hashFiles(
      entries.filter((entry) => entry.type === "file"),
      { signal: options.signal },
    );
    const name = basename(resolve(options.workingDirectory, file.host));
    const targetPath = (entry: ContextEntry) =>
      isDirectory
        ? posix.resolve(options.cwd, file.path ?? name, entry.relativePath)
        : posix.resolve(options.cwd, file.path?.replace(/\/$/, `/${name}`) ?? name);
    staged = addStaged(
      staged,
      entries.map((entry): [string, StagedEntry] => [targetPath(entry), stagedEntry(entry, file, hashes)]),
    );
  }
  return staged;
}

async function findEntries(
  { host }: FileArgument,
  { workingDirectory, excludes, signal, warn }: LocalFilesOptions,
): Promise<{ isDirectory: boolean; entries: readonly ContextEntry[] }> {
  const absolutePath = realPath(host, workingDirectory);
  const stats = localFileSystem.stat(absolutePath);
  if (!stats.isDirectory()) {
    const entry = entryOf({ contextPath: host, absolutePath, relativePath: "" }, stats, localFileSystem);
    if (entry.type !== "special") return { isDirectory: false, entries: [entry] };
    throw usageError(wording`${{ option: "file" }} ${host} is neither a file nor a directory`);
  }
  const { matches, warnings } = await resolveSources({
    context: await openBuildContext(absolutePath, workingDirectory),
    ignore: ignoreRules([], { defaultExcludes: true }),
    sources: ["."],
    files: localFileSystem,
    // A name without a slash matches at any depth, as in a .gitignore.
    exclude: excludes.map((pattern) => (pattern.includes("/") ? pattern : `**/${pattern}`)),
    signal,
  });
  for (const { message } of warnings) warn(wording`${{ option: "file" }} ${host}: ${message}`);
  return { isDirectory: true, entries: matches.flatMap(({ entries }) => [...entries]) };
}

function realPath(host: string, workingDirectory: string): string {
  const path = resolve(workingDirectory, host);
  try {
    return localPath(realpathSync(path));
  } catch (error) {
    const reason = isMissing(error) ? "no such file or directory" : reasonOf(error);
    throw new BoughError(wording`cannot read ${{ option: "file" }} ${host}: ${reason}`, {
      kind: "usage",
      cause: error,
    });
  }
}

function stagedEntry(
  entry: ContextEntry,
  { uid, gid, mode }: FileArgument,
  hashes: ReadonlyMap<string, string>,
): StagedEntry {
  switch (entry.type) {
    case "file":
      return stagedFile(entry, hashes, { uid, gid, mode: mode ?? entry.mode });
    case "directory":
      return { type: "directory", uid, gid, mode: entry.mode, isExplicit: false };
    case "symlink":
      return { type: "symlink", uid, gid, target: entry.target };
    case "special":
      throw new Error(`${entry.absolutePath} is special, and should have been left out`);
  }
}

function stagedFile(
  { absolutePath, size }: FileEntry,
  hashes: ReadonlyMap<string, string>,
  owned: { uid: number; gid: number; mode: number },
): StagedEntry {
  const sha256 = hashes.get(absolutePath) ?? "";
  return { type: "file", sha256, size, content: { kind: "local", absolutePath }, ...owned };
}

const maxListedFiles = 5;

/** Returns the mounts of a failed step with the current state of their files of this machine. */
export async function currentMounts(
  { fields: { mounts = [] } }: FailedStep,
  { runtime, log }: Pick<Surroundings, "runtime" | "log">,
): Promise<InstanceMount[]> {
  const found: InstanceMount[] = [];
  for (const mount of mounts) {
    if (!("host_files" in mount)) {
      found.push(mount);
      continue;
    }
    const files = await findMountedFiles(mount.host_files, runtime.signal, log.warn);
    found.push({ ...mount, host_files: new HostFiles(() => files) });
  }
  return found;
}

/**
 * Returns the files of a mount in their current state, since no image has their old contents. Calls `warn` if files have changed or are
 * gone.
 */
async function findMountedFiles(
  files: Iterable<HostFile>,
  signal: AbortSignal,
  warn: (message: Message) => void,
): Promise<readonly HostFile[]> {
  const found: HostFile[] = [];
  const changed: string[] = [];
  for (const file of files) {
    signal.throwIfAborted();
    const now = "uuid" in file ? file : await describeCurrentFile(file);
    if (now !== undefined) found.push(now);
    if (now?.sha256 !== file.sha256 && "path" in file) changed.push(file.path);
  }
  if (changed.length > 0)
    warn(`changed since the step failed, and mounted as they are now: ${list(changed)}`);
  return found;
}

/** Returns the current state of a file; `undefined` if it is gone or can't be read. */
async function describeCurrentFile<File extends HostFile & { path: string }>(
  file: File,
): Promise<File | undefined> {
  try {
    const stats = statSync(file.path);
    if (!stats.isFile()) return undefined;
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const chunk of Bun.file(file.path).stream()) hasher.update(chunk);
    const sha256 = hasher.digest("hex");
    return sha256 === file.sha256 ? file : { ...file, sha256, size: stats.size, mtime: stats.mtimeMs / 1000 };
  } catch {
    return undefined;
  }
}

/** Lists the first few paths. */
function list(paths: readonly string[]): string {
  const others = paths.length - maxListedFiles;
  return [...paths.slice(0, maxListedFiles), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}
