import { createReadStream, realpathSync } from "node:fs";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import { ignoreRules } from "../../context/patterns/ignore.ts";
import type { ContextEntry } from "../../context/sources/entry.ts";
import { resolveSources } from "../../context/sources/sources.ts";
import { directoryMode } from "../../image/file-mode.ts";
import type { CopiedEntry } from "../../store/copies.ts";
import type { ResolvedRepository } from "../addresses/repository-address.ts";
import type { BuildJob } from "../job.ts";
import { createContentUploads } from "../operations/content-uploads.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import { checkOut, keepsGitDirectory } from "./check-out.ts";
import { createGitClient } from "./git-client.ts";
import { adviceIfGone } from "./resolve-repository.ts";

/**
 * Returns a commit's entries, each directory before its contents. A commit never changes, so its entries are remembered and a
 * known commit is not fetched.
 */
export async function readRepository(
  repository: ResolvedRepository,
  build: BuildJob,
): Promise<readonly CopiedEntry[]> {
  const { copies } = build.services.store;
  const { commit, shown, ref } = repository;
  const image = `commit ${commit}`;
  const known = copies.get(image, wordsOf(repository));
  build.emit({ type: "repository", url: shown, ref, commit, cached: known !== undefined });
  if (known !== undefined) return known[0]?.entries ?? [];
  const entries = await sendRepository(repository, build);
  copies.set(image, wordsOf(repository), [{ path: "/", name: "", type: "directory", entries }]);
  return entries;
}

/** Fetches the repository, even if its entries are remembered. Sends the files that the service lacks. */
export async function sendRepository(
  repository: ResolvedRepository,
  build: BuildJob,
): Promise<readonly CopiedEntry[]> {
  const { address } = repository;
  const access = accessForAdd(build);
  const client = createGitClient(address, access);
  using place = await build.services.git.makeDirectory();
  const { directory, files, commitTime } = await checkOut(repository, {
    ...{ client, place: realpathSync(place.path), maxBytes: build.asked.maxAddBytes },
    adviceIfGone: adviceIfGone(address, access),
  });
  const contents = createContentUploads(build, Number.POSITIVE_INFINITY);
  const entries: CopiedEntry[] = [];
  for (const entry of await findEntries({ directory, files }, repository, build.services.signal)) {
    if (entry.relativePath === "") continue;
    build.services.signal.throwIfAborted();
    const owned = { path: entry.relativePath, uid: 0, gid: 0 };
    // git records only whether a file is executable.
    const mode = entry.mode & 0o755;
    if (entry.type === "directory") entries.push({ type: "directory", mode: directoryMode, ...owned });
    else if (entry.type === "symlink") entries.push({ type: "symlink", target: entry.target, ...owned });
    else if (entry.type === "file") {
      const sha256 = await contents.add(bytesOf(entry.absolutePath), entry.size);
      entries.push({ type: "file", mode, sha256, size: entry.size, mtime: commitTime, ...owned });
    }
  }
  await contents.finish();
  return entries;
}

/** Returns everything that determines a commit's files. A kept `.git` contains the repository's address. */
function wordsOf({ address, shown, ref, exclude }: ResolvedRepository): string {
  const { subdirectory, hasSubmodules } = address;
  const kept = keepsGitDirectory({ address }) ? [shown, ref] : null;
  return JSON.stringify([subdirectory, hasSubmodules, kept, exclude]);
}

async function findEntries(
  { directory, files }: { directory: string; files: FileSystem },
  repository: ResolvedRepository,
  signal: AbortSignal,
): Promise<readonly ContextEntry[]> {
  const isKept = keepsGitDirectory(repository);
  // A submodule's `.git` is a file with a path of this machine.
  const exclude = isKept ? repository.exclude : [...repository.exclude, "**/.git"];
  const { matches } = await resolveSources({
    context: { path: repository.shown, absolutePath: directory, realPath: directory },
    ignore: ignoreRules([], { defaultExcludes: false }),
    sources: ["."],
    files,
    exclude,
    signal,
  });
  return matches.flatMap(({ entries }) => [...entries]);
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path, { highWaterMark: 1024 * 1024 });
}
