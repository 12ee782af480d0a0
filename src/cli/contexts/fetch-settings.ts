import type { RemoteAccess } from "../../builder/remote-files/remote-access.ts";
import type { Log } from "../../terminal/log.ts";
import { createGit } from "../builds/git.ts";
import type { SecretOptions } from "../builds/options/secret-options.ts";
import { openScratch } from "../export/scratch.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/state-directory.ts";
import type { FetchedSource } from "./context-source.ts";
import { type KeptContexts, openKeptContexts } from "./kept-contexts.ts";

/** The options of a build that concern its fetched contexts. */
export interface FetchSettings extends Pick<RemoteAccess, "buildArgs" | "maxAddBytes"> {
  secrets: Pick<SecretOptions, "load">;
  /** True to keep the contexts for the next build. */
  keepsContext: boolean;
  log: Log;
}

/** Returns what fetching from the address of a context needs. */
export function accessFor(
  source: FetchedSource,
  { buildArgs, maxAddBytes, secrets, log }: FetchSettings,
  runtime: Runtime,
  own: Pick<RemoteAccess, "subject" | "signal">,
): RemoteAccess {
  return {
    ...{ buildArgs, maxAddBytes, git: createGit(runtime), clock: runtime.clock },
    // Secrets may come from a pipe: they are read only if they are needed.
    secrets: source.kind === "repository" ? secrets.load() : { values: new Map(), agents: new Map() },
    fetchUrl: runtime.fetch,
    warn: (message) => log.warn(message),
    ...own,
  };
}

/** Returns the contexts that are kept, or a place for contexts that are removed with `stack`. */
export function placeForContexts(
  { keepsContext }: FetchSettings,
  runtime: Runtime,
  stack: DisposableStack,
): KeptContexts {
  const parent = keepsContext
    ? stateDirectory(runtime)
    : stack.use(openScratch("context", runtime.environment)).path;
  return openKeptContexts(parent, runtime.clock);
}
