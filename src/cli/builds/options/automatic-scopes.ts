import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { ScopeChoice } from "../../../builder/scopes/open-scopes.ts";
import { isScopeName } from "../../../builder/scopes/scope-name.ts";
import { asRecord, asText } from "../../../service/http/json.ts";
import { sha256Of } from "../../../sha256.ts";
import { isCi } from "../../../terminal/color.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The CI job that runs, as its environment describes it. */
interface Job {
  /** The CI system's name, for messages. */
  system: string;
  /** `undefined` if the job builds a tag. Unused if `request` is set. */
  branch: string | undefined;
  /** The number of the pull or merge request that the job builds. */
  request: string | undefined;
  /** The request's target branch. */
  target?: string | undefined;
  /** The repository's default branch, if the CI system names it. */
  main: string | undefined;
}

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
  const main = job?.main ?? (context === undefined ? undefined : findDefaultBranch(context));
  const scopes = (...names: (string | undefined)[]) => [
    ...new Set(names.filter((name) => name !== undefined)),
  ];
  const mainScope = main === undefined ? undefined : scopeOfBranch(main);
  const known = main === undefined ? "the default branch is not known" : `${main} is the default branch`;
  if (job === undefined) {
    const where = isCi(environment.CI) ? "in an unknown CI system" : "not in CI";
    return { from: scopes(mainScope), to: undefined, reason: `${where}, and ${known}` };
  }
  const { system, branch, request, target } = job;
  if (request !== undefined) {
    const own = `pull/${request}`;
    const from = scopes(own, target === undefined ? undefined : scopeOfBranch(target), mainScope);
    return { from, to: own, reason: `${system} builds pull request ${request}, and ${known}` };
  }
  if (branch === undefined)
    return { from: scopes(mainScope), to: undefined, reason: `${system} builds no branch, and ${known}` };
  const own = scopeOfBranch(branch);
  return { from: scopes(own, mainScope), to: own, reason: `${system} builds branch ${branch}, and ${known}` };
}

/** Returns `undefined` outside CI, and in an unknown CI system. */
export function describeJob(environment: Environment): Job | undefined {
  const get = (name: string) => environment[name] || undefined;
  const isSet = (name: string) => get(name)?.toLowerCase() === "true";
  if (isSet("GITHUB_ACTIONS")) return describeGitHub(get);
  if (isSet("GITLAB_CI")) {
    const request = get("CI_MERGE_REQUEST_IID") ?? get("CI_EXTERNAL_PULL_REQUEST_IID");
    return {
      system: "GitLab",
      branch: get("CI_COMMIT_BRANCH"),
      request: numberIn(request),
      target:
        get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") ?? get("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME"),
      main: get("CI_DEFAULT_BRANCH"),
    };
  }
  if (isSet("BUILDKITE")) {
    return {
      system: "Buildkite",
      branch: get("BUILDKITE_TAG") === undefined ? get("BUILDKITE_BRANCH") : undefined,
      request: numberIn(get("BUILDKITE_PULL_REQUEST")),
      target: get("BUILDKITE_PULL_REQUEST_BASE_BRANCH"),
      main: get("BUILDKITE_PIPELINE_DEFAULT_BRANCH"),
    };
  }
  if (!isSet("CIRCLECI")) return undefined;
  return {
    system: "CircleCI",
    branch: get("CIRCLE_BRANCH"),
    request: get("CIRCLE_PR_NUMBER") ?? numberIn(get("CIRCLE_PULL_REQUEST")),
    main: undefined,
  };
}

function describeGitHub(get: (name: string) => string | undefined): Job {
  const ref = get("GITHUB_REF") ?? "";
  const event = readEvent(get("GITHUB_EVENT_PATH"));
  const name = get("GITHUB_EVENT_NAME") ?? "";
  const isRequest = name.startsWith("pull_request");
  const number = /^refs\/pull\/(\d+)\//.exec(ref)?.[1] ?? numberIn(String(event?.number ?? ""));
  return {
    system: "GitHub",
    branch: !branchEvents.includes(name) ? undefined : /^refs\/heads\/(.+)$/.exec(ref)?.[1],
    request: isRequest || ref.startsWith("refs/pull/") ? number : undefined,
    target: get("GITHUB_BASE_REF"),
    main: asText(asRecord(event?.repository)?.default_branch),
  };
}

/**
 * Events whose ref is the branch that the job builds. Others (`workflow_run`, `issue_comment`) have the default branch as their
 * ref, but may build a pull request's files.
 */
const branchEvents = ["push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"];

/** Reads the event that started the job. It contains facts that no variable has. */
export function readEvent(path: string | undefined) {
  if (path === undefined) return undefined;
  try {
    return asRecord(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    // The variables contain the most important facts.
    return undefined;
  }
}

/** Returns the number of a request, given alone or at the end of a URL. Buildkite sets `false` if there is no request. */
function numberIn(text: string | undefined): string | undefined {
  return /(?:^|\/)(\d{1,18})$/.exec(text ?? "")?.[1];
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
