import { lutimesSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { FoundCommit, RepositoryAddress } from "../../builder/addresses/repository-address.ts";
import { redactUrl } from "../../builder/addresses/source-url.ts";
import { keepGitDirectoryArgument } from "../../builder/interpreter/variable-warnings.ts";
import type { RemoteAccess } from "../../builder/remote-files/remote-access.ts";
import { checkOut, keepsGitDirectory } from "../../builder/repositories/check-out.ts";
import { createGitClient } from "../../builder/repositories/git-client.ts";
import { adviceIfGone, findCommit } from "../../builder/repositories/resolve-repository.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { createPace, type Pace } from "../../pace.ts";
import { sha256Of } from "../../sha256.ts";
import type { Log } from "../../terminal/log.ts";
import { contextGroup } from "./context-group.ts";
import type { FetchedContext } from "./fetched-context.ts";
import { openTree, treeName, writeModes } from "./fetched-tree.ts";
import type { KeptContexts } from "./kept-contexts.ts";

/** Checks out the commit that the address refers to now, unless it is kept already: a commit never changes. */
export async function fetchRepository(
  given: RepositoryAddress,
  { access, contexts, log }: { access: RemoteAccess; contexts: KeptContexts; log: Log },
): Promise<FetchedContext> {
  const address = withOptions(given, access);
  const shown = redactUrl(address.remote, access.buildArgs);
  const found = await findCommit(address, access);
  // The location leaves out the ref, so that branches share layers.
  const location = address.subdirectory === "" ? shown : `${shown}#:${address.subdirectory}`;
  const group = contextGroup(location);
  const key = keyOf(address, shown, found);
  const known = contexts.find(group, key);
  log.info(
    known === undefined
      ? `fetching ${shown} at ${found.commit}${found.ref === undefined ? "" : ` (${found.ref})`}`
      : `git cache hit (${found.commit} is known) ${shown}`,
  );
  const held = known ?? (await fetchCommit({ address, ...found }));
  // The fetch has checked that the subdirectory exists. This holds for a kept context, too: its session has the same subdirectory.
  return {
    held,
    ...openTree(held.path, address.subdirectory),
    location,
    name: `${access.subject} ${location}`,
    shown,
    repository: found,
  };

  async function fetchCommit(wanted: { address: RepositoryAddress } & FoundCommit) {
    using started = contexts.begin(group);
    const client = createGitClient(address, access);
    const directory = realpathSync(started.path);
    const { commitTime, modes } = await checkOut(wanted, {
      ...{ client, place: directory, maxBytes: access.maxAddBytes },
      adviceIfGone: adviceIfGone(address, access),
    });
    const isKept = keepsGitDirectory({ address });
    if (modes !== undefined) writeModes(directory, modes);
    await normalize(join(directory, treeName), { commitTime, isKept, pace: createPace(access.signal) });
    return started.keep(key);
  }
}

/** Applies BuildKit's build argument that keeps `.git`. The address has precedence. */
function withOptions(address: RepositoryAddress, { buildArgs }: RemoteAccess): RepositoryAddress {
  const given = parseGoBoolean(buildArgs.get(keepGitDirectoryArgument) ?? "");
  const keepsGitDirectory = address.keepsGitDirectory ?? given ?? false;
  return { ...address, keepsGitDirectory };
}

/** Returns a key made of everything that determines the files. A `.git` that is kept contains the repository's address and the ref. */
function keyOf(address: RepositoryAddress, shown: string, { commit, ref }: FoundCommit): string {
  const kept = keepsGitDirectory({ address }) ? [shown, ref] : null;
  return `${commit}-${sha256Of(JSON.stringify([address.hasSubmodules, kept])).slice(0, 8)}`;
}

/** Removes `.git`, including those of submodules, unless it is kept, and gives all files the commit's time. */
async function normalize(
  directory: string,
  options: { commitTime: number; isKept: boolean; pace: Pace },
): Promise<void> {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    await options.pace.step();
    const path = join(directory, entry.name);
    if (entry.name === ".git" && !options.isKept) rmSync(path, { recursive: true, force: true });
    else if (entry.isDirectory()) await normalize(path, options);
    else lutimesSync(path, options.commitTime, options.commitTime);
  }
}
