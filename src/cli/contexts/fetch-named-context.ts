import { existsSync, mkdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { modifiedSeconds, redactUrl } from "../../builder/addresses/source-url.ts";
import { createHashedStream, isHeader, peekBytes } from "../../builder/archives/open-archive.ts";
import type { ContextFiles } from "../../builder/contexts/named-context.ts";
import type { ReferenceLock } from "../../builder/reference-lock.ts";
import { wrongContent } from "../../builder/remote-files/download.ts";
import { ignoreRules } from "../../context/patterns/ignore.ts";
import { detectCompression } from "../../image/compression.ts";
import { blockBytes } from "../../image/tar-header.ts";
import { tap } from "../../streams.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { contextGroup } from "./context-group.ts";
import type { LazySource } from "./context-source.ts";
import { download, type FetchDependencies } from "./fetch-archive.ts";
import { fetchRepository } from "./fetch-repository.ts";
import { accessFor, type FetchedContext, type FetchSettings, openContextStorage } from "./fetched-context.ts";
import { openTree, treeName } from "./fetched-tree.ts";
import { keptForSession, onDisk } from "./kept-contexts.ts";
import { requireSize, writeContent } from "./unpack-context.ts";

/** The settings and resources with which a build fetches all of its named contexts. */
export interface NamedFetching {
  settings: FetchSettings;
  runtime: Runtime;
  /** `--lock`. It does not lock the build context itself, which is what is built. */
  lock: ReferenceLock | undefined;
  /** Holds the files until it is disposed of. */
  holder: DisposableStack;
  /** Returns the location of the build context, which names the session that the files are kept for. */
  mainLocation(): string;
}

interface NamedAddress {
  name: string;
  source: LazySource;
  signal: AbortSignal;
}

/** Fetches the context of `--build-context NAME=ADDRESS`. */
export async function fetchNamedContext(
  address: NamedAddress,
  fetching: NamedFetching,
): Promise<{ files: ContextFiles; fetched: FetchedContext }> {
  const { settings, holder } = fetching;
  const fetched = await fetchSource(address, fetching);
  holder.use(fetched.held);
  const { tree, files, location: path } = fetched;
  const isFile = address.source.kind === "url";
  // As in BuildKit, an ignore file applies only in a directory of this machine.
  if (existsSync(join(tree, ".dockerignore")))
    settings.log.warn(`.dockerignore is not applied to ${fetched.name}, as in Docker`);
  return {
    files: {
      context: { name: address.name, path, absolutePath: tree, realPath: tree, isFile, isTakenWhole: true },
      files,
      ignore: ignoreRules([], { defaultExcludes: false }),
    },
    fetched,
  };
}

async function fetchSource(
  { name, source, signal }: NamedAddress,
  { settings, runtime, holder, mainLocation: mainPlace, lock }: NamedFetching,
): Promise<FetchedContext> {
  if (source.kind === "fetched") return source.context;
  const subject = `the build context ${name} at`;
  const access = { ...(await accessFor(source, settings, runtime, { subject, signal })), lock };
  const contexts = keptForSession(openContextStorage(settings, runtime, holder), contextGroup(mainPlace()));
  const fetching = { access, contexts, log: settings.log };
  switch (source.kind) {
    case "repository": {
      // BuildKit's build argument that keeps `.git` concerns the build context only.
      const { keepsGitDirectory = false } = source.address;
      return fetchRepository({ ...source.address, keepsGitDirectory }, fetching);
    }
    case "url":
      return fetchLockedFile(source.url, fetching);
  }
}

/** Downloads a file. Rejects if its digest differs from the lock's. */
async function fetchLockedFile(url: string, fetching: FileFetching): Promise<FetchedContext> {
  const { lock, subject, buildArgs } = fetching.access;
  if (lock === undefined) return fetchFile(url, fetching);
  let fetched: (FetchedContext & { sha256: string }) | undefined;
  const shown = redactUrl(url, buildArgs);
  const sha256 = await lock.pin("url", shown, async () => {
    fetched = await fetchFile(url, fetching);
    return fetched.sha256;
  });
  fetched ??= await fetchFile(url, fetching);
  if (fetched.sha256 === sha256) return fetched;
  fetched.held[Symbol.dispose]();
  throw wrongContent(subject, shown, fetched.sha256, { sha256, lock });
}

type FileFetching = Pick<FetchDependencies, "access" | "contexts" | "log">;

/** The name that BuildKit gives to the file. */
const fileName = "context";

/**
 * Downloads the URL of a `--build-context`. As in BuildKit, the context has one file, which is called `context`: an archive is not
 * unpacked, unlike that of a URL as CONTEXT.
 */
function fetchFile(
  url: string,
  { access, contexts, log }: FileFetching,
): Promise<FetchedContext & { sha256: string }> {
  const shown = redactUrl(url, access.buildArgs);
  const name = `${access.subject} ${shown}`;
  const group = contextGroup(shown);
  log.info(`downloading ${shown}`);
  return download(url, access, async (content, headers) => {
    using started = contexts.begin(group);
    const tree = join(started.path, treeName);
    onDisk(tree, () => mkdirSync(tree));
    const modified = modifiedSeconds(headers.get("last-modified"));
    const limits = { name, maxBytes: access.maxAddBytes };
    const { sha256, bytes, isArchive } = await write(content, join(tree, fileName), limits);
    onDisk(tree, () => utimesSync(join(tree, fileName), modified, modified));
    const key = `${sha256}-${modified}`;
    const held = started.keep(key);
    const unpacked = isArchive ? ", which is not unpacked, as in Docker" : "";
    log.info(
      `the file \`${fileName}\` came from ${shown} (${formatBytes(bytes)}, sha256:${sha256})${unpacked}`,
    );
    return { held, ...openTree(held.path), location: shown, name, shown, sha256 };
  });
}

/** Writes the file. Only root may read it, as in BuildKit. */
async function write(
  content: AsyncIterable<Uint8Array>,
  path: string,
  limits: Parameters<typeof requireSize>[1],
): Promise<{ sha256: string; bytes: number; isArchive: boolean }> {
  let bytes = 0;
  const counted = tap(content, (chunk) => {
    bytes += chunk.byteLength;
    requireSize(bytes, limits);
  });
  await using hashed = createHashedStream(counted);
  const { beginning, whole } = await peekBytes(hashed, blockBytes);
  await writeContent(whole(), path, path);
  const isArchive = detectCompression(beginning) !== "none" || isHeader(beginning);
  return { sha256: await hashed.finish(), bytes, isArchive };
}
