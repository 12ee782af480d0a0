import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { ContextFiles } from "../../builder/contexts/named-context.ts";
import { localPath } from "../../context/file-system/local-file-system.ts";
import { ignoreRules } from "../../context/patterns/ignore.ts";
import type { Runtime } from "../process/runtime.ts";
import { contextGroup, type RemoteSource } from "./context-source.ts";
import { fetchFile } from "./fetch-file.ts";
import { fetchRepository } from "./fetch-repository.ts";
import { accessFor, type FetchSettings, placeForContexts } from "./fetch-settings.ts";
import type { FetchedContext } from "./fetched-context.ts";
import { keptForSession } from "./kept-contexts.ts";

/** What fetching needs, the same for all contexts of a build. */
export interface NamedFetching {
  settings: FetchSettings;
  runtime: Runtime;
  /** Holds the files until it is disposed of. */
  holder: DisposableStack;
  /** Returns the place of the build context, which names the session that the files are kept for. */
  mainPlace(): string;
}

interface NamedAddress {
  name: string;
  source: RemoteSource;
  signal: AbortSignal;
}

/** Fetches what `--build-context NAME=ADDRESS` means. */
export async function fetchNamedContext(
  address: NamedAddress,
  fetching: NamedFetching,
): Promise<{ files: ContextFiles; fetched: FetchedContext }> {
  const { settings, holder } = fetching;
  const fetched = await fetchSource(address, fetching);
  holder.use(fetched.held);
  const { tree, place: path } = fetched;
  const realPath = localPath(realpathSync(tree));
  const isFile = address.source.kind === "url";
  // As in BuildKit, an ignore file applies only in a directory of this machine.
  if (existsSync(join(realPath, ".dockerignore")))
    settings.log.warn(`.dockerignore is not applied to ${fetched.name}, as in Docker`);
  return {
    files: {
      context: { name: address.name, path, absolutePath: tree, realPath, isFile, isTakenWhole: true },
      ignore: ignoreRules([], { defaultExcludes: false }),
    },
    fetched,
  };
}

function fetchSource(
  { name, source, signal }: NamedAddress,
  { settings, runtime, holder, mainPlace }: NamedFetching,
): Promise<FetchedContext> {
  const access = accessFor(source, settings, runtime, { subject: `the build context ${name} at`, signal });
  const contexts = keptForSession(placeForContexts(settings, runtime, holder), contextGroup(mainPlace()));
  const fetching = { access, contexts, log: settings.log };
  switch (source.kind) {
    case "repository": {
      // BuildKit's build argument that keeps `.git` concerns the build context only.
      const { keepsGitDirectory = false } = source.address;
      return fetchRepository({ ...source.address, keepsGitDirectory }, fetching);
    }
    case "url":
      return fetchFile(source.url, fetching);
  }
}
