import { readFileSync } from "node:fs";
import type { ScopeChoice } from "../../builder/scopes/open-scopes.ts";
import { isScopeName } from "../../builder/scopes/scope-name.ts";
import { asRecord, asText } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";
import { isCi } from "../../terminal/color.ts";
import { findDefaultBranch } from "./default-branch.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What a CI system says of the job that runs. */
interface Job {
  /** Its name, for people. */
  system: string;
  /** `undefined` for a tag, and where it builds a pull request. */
  branch: string | undefined;
  /** A pull or merge request's number. */
  request: string | undefined;
  /** Where the request is to go. */
  target?: string | undefined;
  /** The repository's default branch, where the system says it. */
  main: string | undefined;
}

export interface AutomaticChoice extends ScopeChoice {
  reason: string;
}

/**
 * `--cache auto`. In CI the branch has a scope of its own, which is written, and read before the default branch's. A pull request
 * has one as well, by its number: whatever its branch is called, it writes no other. Elsewhere nothing is written.
 *
 * @param context its absolute path, where it is a directory of this machine: what it is a checkout of tells the default branch where the environment does not
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
    const where = isCi(environment.CI) ? "in a CI that bough does not know" : "not in CI";
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

/** `undefined`: this is not a CI job, or none of a system that is known here. */
function describeJob(environment: Environment): Job | undefined {
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

/** Others (`workflow_run`, `issue_comment`) have the default branch's name, and may well build a pull request's files. */
const branchEvents = ["push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"];

/** The event that a job was started for: what is in no variable. */
function readEvent(path: string | undefined) {
  if (path === undefined) return undefined;
  try {
    return asRecord(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    // The variables say what matters most.
    return undefined;
  }
}

/** The number of a request, or at the end of its address. `false` is Buildkite's word for none. */
function numberIn(text: string | undefined): string | undefined {
  return /(?:^|\/)(\d{1,18})$/.exec(text ?? "")?.[1];
}

const digestDigits = 8;
const cleanedCharacters = 80;

/** A branch whose name is not a scope's has its digest in it, so that no two have one scope. Those of requests are theirs alone. */
function scopeOfBranch(branch: string): string {
  if (isScopeName(branch) && !/^pull(\/|$)/.test(branch)) return branch;
  const digest = sha256Of(branch).slice(0, digestDigits);
  const cleaned = branch
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .slice(0, cleanedCharacters);
  return `${cleaned}-${digest}`;
}
