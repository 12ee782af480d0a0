import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { ScopeChoice } from "../../../builder/scopes/open-scopes.ts";
import { isScopeName } from "../../../builder/scopes/scope-name.ts";
import { sha256Of } from "../../../sha256.ts";
import { isCi } from "../../../terminal/color.ts";
import { describeJob } from "../tags/ci-job.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface AutomaticChoice extends ScopeChoice {
  reason: string;
}

/**
 * Chooses the scopes of `--cache auto`. In CI, each branch has a scope: a build writes it, and reads it before the default
 * branch's scope. A pull request's scope is named by its number, and the build writes no other, whatever the branch is called.
 * Outside CI, no scope is written.
 *
 * @param context the absolute path of a local context: its checkout tells the default branch if the environment does not
 */
export function chooseAutomatically(environment: Environment, context: string | undefined): AutomaticChoice {
  const job = describeJob(environment);
  const main = job?.defaultBranch ?? (context === undefined ? undefined : findDefaultBranch(context));
  const scopes = (...names: (string | undefined)[]) => [
    ...new Set(names.filter((name) => name !== undefined)),
  ];
  const mainScope = main === undefined ? undefined : scopeOfBranch(main);
  const known = main === undefined ? "the default branch is not known" : `${main} is the default branch`;
  if (job === undefined) {
    const where = isCi(environment.CI) ? "in an unknown CI system" : "not in CI";
    return { from: scopes(mainScope), to: undefined, reason: `${where}, and ${known}` };
  }
  const { system, branch, request, baseBranch } = job;
  if (request !== undefined) {
    const own = `pull/${request}`;
    const from = scopes(own, baseBranch === undefined ? undefined : scopeOfBranch(baseBranch), mainScope);
    return { from, to: own, reason: `${system} builds pull request ${request}, and ${known}` };
  }
  if (branch === undefined)
    return { from: scopes(mainScope), to: undefined, reason: `${system} builds no branch, and ${known}` };
  const own = scopeOfBranch(branch);
  return { from: scopes(own, mainScope), to: own, reason: `${system} builds branch ${branch}, and ${known}` };
}

const digestDigits = 8;
const cleanedCharacters = 80;

/**
 * Returns the name of a branch's scope. A branch name that is an invalid scope name, or is in `pull/`, which is reserved for
 * requests, is shortened to a valid name with its digest, so that no two branches share a scope.
 */
function scopeOfBranch(branch: string): string {
  if (isScopeName(branch) && !/^pull(\/|$)/.test(branch)) return branch;
  const digest = sha256Of(branch).slice(0, digestDigits);
  const cleaned = branch
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .slice(0, cleanedCharacters);
  return `${cleaned}-${digest}`;
}

/** Finds the default branch of the repository that a directory is a checkout of, as the clone recorded it. Does not run git. */
export function findDefaultBranch(directory: string): string | undefined {
  const repository = findRepository(directory);
  if (repository === undefined) return undefined;
  const remote = "refs/remotes/origin/";
  const head = /^ref: refs\/remotes\/origin\/(.+)$/m.exec(read(join(repository, `${remote}HEAD`)))?.[1];
  if (head !== undefined) return head;
  const packed = read(join(repository, "packed-refs"));
  const has = (branch: string) =>
    [remote, "refs/heads/"].some(
      (kind) => read(join(repository, kind, branch)) !== "" || packed.includes(` ${kind}${branch}\n`),
    );
  return ["main", "master"].find(has);
}

/** Finds the directory with the repository's references. All worktrees of a repository share one. */
function findRepository(directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    const path = join(at, ".git");
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) return path;
    const link = stats?.isFile() ? /^gitdir: (.+)$/m.exec(read(path))?.[1] : undefined;
    if (link !== undefined) {
      const own = resolve(at, link);
      return resolve(own, read(join(own, "commondir")).trim());
    }
    if (dirname(at) === at) return undefined;
  }
}

/** Returns a file's content; empty if it can't be read or is no regular file, since reading a pipe would block. */
function read(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}
