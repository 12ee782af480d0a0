import type { GitProgram } from "../../../builder/addresses/git-program.ts";
import { gitEnvironment } from "../../../builder/repositories/git-settings.ts";
import { findDefaultBranch } from "../options/automatic-scopes.ts";
import { type GitFacts, refOf, sourceOf, timeOf } from "./git-facts.ts";

/** Nothing here depends on the size of a repository. */
const seconds = 20;
const environment = {
  // The checkout may be somebody else's: no program that its settings name is run.
  ...gitEnvironment([["safe.directory", "*"]]),
  GIT_OPTIONAL_LOCKS: "0",
  // A commit that is not there would be fetched by programs of the settings. Older versions know only the second variable.
  GIT_NO_LAZY_FETCH: "1",
  GIT_ALLOW_PROTOCOL: "",
};

/** Returns what a checkout says of its commit; `undefined` if a directory is none, or there is no git. */
export async function factsOfCheckout(
  directory: string,
  git: Pick<GitProgram, "run">,
  signal: AbortSignal,
): Promise<GitFacts | undefined> {
  const ask = async (...args: string[]) => {
    const limits = { environment, maxFileBytes: 0, seconds, signal };
    const { status, stdout } = await git.run(["-C", directory, ...args], limits);
    return status === 0 ? stdout.trim() || undefined : undefined;
  };
  const sha = await ask("rev-parse", "--verify", "HEAD");
  if (sha === undefined) return undefined;
  const ref = await ask("symbolic-ref", "--quiet", "HEAD");
  // As a checkout of a tag, which names no branch.
  const tags =
    ref === undefined ? await ask("tag", "--points-at", "HEAD", "--sort=-version:refname") : undefined;
  return {
    ref: ref ?? refOf({ request: undefined, tag: tags?.split("\n", 1)[0], branch: undefined }),
    sha,
    ...{ defaultBranch: findDefaultBranch(directory), baseBranch: undefined, isScheduled: false },
    source: sourceOf(await ask("config", "--get", "remote.origin.url")),
    committedAt: timeOf(await ask("log", "-1", "--no-show-signature", "--format=%cI")),
  };
}
