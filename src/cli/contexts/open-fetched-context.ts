import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Dialect } from "../../builder/dialect.ts";
import type { BuildContext } from "../../context/build-context.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { type FileSystem, localPath } from "../../context/file-system/file-system.ts";
import {
  type IgnoreRules,
  ignoreFileCandidates,
  ignoreRules,
  readIgnoreRules,
} from "../../context/patterns/ignore.ts";
import { contextPathOf, resolveInContext } from "../../context/sources/resolve-path.ts";
import { type BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Runtime } from "../process/runtime.ts";
import { isStandardInput } from "../process/same-file.ts";
import type { FetchedSource } from "./context-source.ts";
import {
  type DockerfilePlace,
  type DockerfileText,
  dockerfileName,
  readDockerfile,
} from "./dockerfile-file.ts";
import { type FetchDependencies, fetchFromUrl, readFromStdin } from "./fetch-archive.ts";
import { fetchRepository } from "./fetch-repository.ts";
import {
  accessFor,
  type FetchedContext,
  type FetchSettings,
  type OpenedContext,
  openContextStorage,
} from "./fetched-context.ts";

interface Settings extends FetchSettings {
  dialect: Dialect;
  defaultExcludes: boolean;
}

/**
 * Fetches a context, and reads the Dockerfile and the ignore rules in it.
 *
 * @param named a Dockerfile of this machine
 */
export async function openFetchedContext(
  source: FetchedSource,
  named: DockerfilePlace | undefined,
  settings: Settings,
  given: { options: { readonly dockerfile?: string | undefined }; runtime: Runtime },
): Promise<OpenedContext> {
  const { runtime, options } = given;
  if (source.kind === "stdin" && named !== undefined) requireOtherFile(named);
  using stack = new DisposableStack();
  const contexts = openContextStorage(settings, runtime, stack);
  const fetched = await fetchContext(source, { settings, contexts, runtime });
  stack.use(fetched.held);
  const dockerfile =
    named === undefined
      ? await readOwn(fetched, options.dockerfile, runtime)
      : await readNamed(named, fetched, runtime);
  const ignore = readRules(fetched, dockerfile.path, settings);
  const { tree, files, location } = fetched;
  const context: BuildContext = {
    ...{ path: fetched.name, absolutePath: tree, realPath: tree },
    isFetched: fetched.name !== "-",
    isTakenWhole: !settings.dialect.filtersContexts,
  };
  const opened = stack.move();
  return {
    context,
    files,
    location,
    fetched,
    dockerfile,
    ignore,
    [Symbol.dispose]: () => opened.dispose(),
  };
}

interface FetchOptions extends Pick<FetchDependencies, "contexts" | "textKind"> {
  settings: FetchSettings;
  runtime: Runtime;
  /** The words that messages begin with. */
  subject?: string;
}

/** Fetches a context, unless it has been fetched already. */
export async function fetchContext(
  source: FetchedSource,
  { settings, contexts, runtime, subject = "the build context", textKind }: FetchOptions,
): Promise<FetchedContext> {
  if (source.kind === "fetched") return source.context;
  const { log } = settings;
  const access = await accessFor(source, settings, runtime, { subject, signal: runtime.signal });
  switch (source.kind) {
    case "repository":
      return fetchRepository(source.address, { access, contexts, log });
    case "url":
      return fetchFromUrl(source.url, { access, contexts, log, runtime, textKind });
    case "stdin":
      return readFromStdin({ access, contexts, log, runtime });
  }
}

function requireOtherFile({ absolutePath }: DockerfilePlace): void {
  if (!isStandardInput(absolutePath)) return;
  throw usageError(
    "standard input can't be both the build context and the Dockerfile",
    "Put the Dockerfile into the archive, or name a file.",
  );
}

/** Reads a Dockerfile of this machine, not of the context. */
async function readNamed(
  place: DockerfilePlace,
  { name, dockerfile }: FetchedContext,
  runtime: Runtime,
): Promise<DockerfileText> {
  if (dockerfile !== undefined) throw twoDockerfiles(place.path, name);
  return { ...place, text: await readDockerfile(place, runtime) };
}

/** Reads the context's own Dockerfile. No link leads out of the context. */
async function readOwn(
  { name, tree, files, dockerfile }: FetchedContext,
  named: string | undefined,
  runtime: Runtime,
): Promise<DockerfileText> {
  const isThere = (file: string) => resolveInContext(tree, file, files).kind !== "missing";
  const path = contextPathOf(named === undefined ? dockerfileName(isThere) : localPath(named));
  if (dockerfile !== undefined) {
    if (named !== undefined) throw twoDockerfiles(named, name);
    return { path, absolutePath: join(tree, path), text: dockerfile };
  }
  const found = resolveInContext(tree, path, files);
  if (found.kind === "missing")
    throw usageError(
      `cannot read the Dockerfile ${displayPath(path)}: ${name} has no such file`,
      wording`${{ option: "dockerfile" }} PATH is relative to the context's root; an absolute PATH is a file on this machine.`,
    );
  const { absolutePath } = found;
  const text = await readDockerfile({ path, absolutePath, isNamed: false }, runtime);
  return { path, absolutePath, text };
}

function twoDockerfiles(path: string, name: string): BoughError {
  return usageError(
    wording`${{ option: "dockerfile" }} ${displayPath(path)} cannot be used: ${name} is a Dockerfile itself`,
    "Leave one of them out, or give an archive as the build context.",
  );
}

/** Reads the ignore rules. Docker reads an ignore file only in a directory of its client's machine. */
function readRules(
  { name, tree, files }: FetchedContext,
  dockerfilePath: string,
  { dialect, defaultExcludes, log }: Settings,
): IgnoreRules {
  const locate = (path: string) => locateIn(tree, path, files);
  const places = { contextPath: "", dockerfilePath };
  if (dialect.filtersContexts) return readIgnoreRules({ ...places, defaultExcludes, locate });
  const unread = ignoreFileCandidates(places).find((path) => existsSync(locate(path) ?? ""));
  if (unread !== undefined)
    log.warn(
      wording`${displayPath(unread)} is not applied to ${name}, as in Docker; without ${{ option: "docker" }} it is`,
    );
  return ignoreRules([], { defaultExcludes });
}

/** Returns the path of a file of the context, links followed; `undefined` if there is none. Absolute paths are this machine's. */
function locateIn(tree: string, path: string, files: FileSystem): string | undefined {
  if (isAbsolute(path)) return path;
  const found = resolveInContext(tree, contextPathOf(localPath(path)), files);
  return found.kind === "found" ? found.absolutePath : undefined;
}
