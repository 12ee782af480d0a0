import type { FoundCommit } from "../../builder/addresses/repository-address.ts";
import type { InputObserver } from "../../builder/contexts/named-context.ts";
import type { RemoteAccess } from "../../builder/remote-files/remote-access.ts";
import type { GivenSecrets } from "../../builder/state/secrets.ts";
import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { Log } from "../../terminal/log.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { openScratch } from "../process/scratch.ts";
import type { DockerfileText } from "./dockerfile-file.ts";
import type { FetchedTree } from "./fetched-tree.ts";
import { type HeldContext, type KeptContexts, openKeptContexts } from "./kept-contexts.ts";
import { createGit } from "./programs.ts";

/** A fetched context, which is on this machine's disk for as long as it is held. */
export interface FetchedContext extends FetchedTree {
  held: HeldContext;
  /** The address that names the build session, as the absolute path does for a directory. */
  location: string;
  /** The name in messages. */
  name: string;
  /** The address without ref, directory and secrets; `-` for standard input. */
  shown: string;
  /** The commit, if the context is a git repository. */
  repository?: FoundCommit;
  /** The digest of an archive or Dockerfile. */
  sha256?: string;
  /** The text of a Dockerfile that came instead of an archive, without any files. */
  dockerfile?: string;
}

/** Reports the origin of a fetched context as an input of the image. */
export function reportOrigin(
  { shown, repository, sha256 }: FetchedContext,
  observer: InputObserver | undefined,
): void {
  if (repository !== undefined) observer?.repository(shown, repository);
  else if (sha256 !== undefined && shown !== "-") observer?.url(shown, sha256);
}

/** A build context on this machine, with its Dockerfile and ignore rules. It must be disposed of after the last read. */
export interface OpenedContext extends Disposable {
  context: BuildContext;
  files: FileSystem;
  /** The context's absolute path, or the address that it was fetched from. It names the build session. */
  location: string;
  /** `undefined` if the context is a directory of this machine. */
  fetched: FetchedContext | undefined;
  dockerfile: DockerfileText;
  ignore: IgnoreRules;
}

/** The options of a build that apply to its fetched contexts. */
export interface FetchSettings extends Pick<RemoteAccess, "buildArgs" | "maxAddBytes"> {
  secrets: { load(): Promise<GivenSecrets> };
  /** True to keep the contexts for the next build. */
  keepsContext: boolean;
  log: Log;
}

/** Returns the access with which a context is fetched from its address. */
export async function accessFor(
  { kind }: { kind: "repository" | "url" | "stdin" },
  { buildArgs, maxAddBytes, secrets, log }: FetchSettings,
  runtime: Runtime,
  own: Pick<RemoteAccess, "subject" | "signal">,
): Promise<RemoteAccess> {
  return {
    ...{ buildArgs, maxAddBytes, git: createGit(runtime), clock: runtime.clock },
    // Secrets may come from a pipe, so they are read only if they are needed.
    secrets: kind !== "stdin" ? await secrets.load() : { values: new Map(), agents: new Map() },
    fetchUrl: runtime.fetch,
    warn: (message) => log.warn(message),
    ...own,
  };
}

/** Opens the storage of fetched contexts: with `keepsContext` the permanent one, else one that `stack` removes. */
export function openContextStorage(
  { keepsContext }: FetchSettings,
  runtime: Runtime,
  stack: DisposableStack,
): KeptContexts {
  const parent = keepsContext
    ? stateDirectory(runtime)
    : stack.use(openScratch("context", runtime.environment)).path;
  return openKeptContexts(parent, runtime.clock);
}
