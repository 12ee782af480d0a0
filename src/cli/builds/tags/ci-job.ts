/** The CI job that runs, as its environment describes it. */
import { readFileSync } from "node:fs";
import { parseGoBoolean } from "../../../go/boolean.ts";
import { asRecord, asText } from "../../../service/http/json.ts";
import { type GitFacts, refOf, sourceOf, timeOf } from "./git-facts.ts";

type Get = (name: string) => string | undefined;

interface CiJob extends GitFacts {
  /** The CI system's name, for messages. */
  system: string;
  /** The branch whose files the job builds; `undefined` for a tag, and where it may be another one. Unused if `request` is set. */
  branch: string | undefined;
  /** The number of the pull or merge request that the job builds. */
  request: string | undefined;
}

/** The CI systems by the variable that each sets. */
const systems: Readonly<Record<string, (get: Get) => CiJob>> = {
  GITHUB_ACTIONS: describeGithub,
  GITLAB_CI: (get) =>
    jobOf({
      system: "GitLab",
      tag: get("CI_COMMIT_TAG"),
      branch: get("CI_COMMIT_BRANCH"),
      request: numberIn(get("CI_MERGE_REQUEST_IID") ?? get("CI_EXTERNAL_PULL_REQUEST_IID")),
      baseBranch:
        get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") ?? get("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME"),
      defaultBranch: get("CI_DEFAULT_BRANCH"),
      sha: get("CI_COMMIT_SHA"),
      isScheduled: get("CI_PIPELINE_SOURCE") === "schedule",
      source: get("CI_PROJECT_URL"),
      committedAt: timeOf(get("CI_COMMIT_TIMESTAMP")),
    }),
  BUILDKITE: (get) =>
    jobOf({
      system: "Buildkite",
      tag: get("BUILDKITE_TAG"),
      branch: get("BUILDKITE_TAG") === undefined ? get("BUILDKITE_BRANCH") : undefined,
      request: numberIn(get("BUILDKITE_PULL_REQUEST")),
      baseBranch: get("BUILDKITE_PULL_REQUEST_BASE_BRANCH"),
      defaultBranch: get("BUILDKITE_PIPELINE_DEFAULT_BRANCH"),
      sha: get("BUILDKITE_COMMIT"),
      isScheduled: get("BUILDKITE_SOURCE") === "schedule",
      source: get("BUILDKITE_REPO"),
      committedAt: undefined,
    }),
  CIRCLECI: (get) =>
    jobOf({
      system: "CircleCI",
      tag: get("CIRCLE_TAG"),
      branch: get("CIRCLE_BRANCH"),
      request: get("CIRCLE_PR_NUMBER") ?? numberIn(get("CIRCLE_PULL_REQUEST")),
      ...{ baseBranch: undefined, defaultBranch: undefined },
      sha: get("CIRCLE_SHA1"),
      isScheduled: false,
      source: get("CIRCLE_REPOSITORY_URL"),
      committedAt: undefined,
    }),
};

/** Returns `undefined` outside CI, and in an unknown CI system. */
export function describeJob(environment: Readonly<Record<string, string | undefined>>): CiJob | undefined {
  const get: Get = (name) => environment[name] || undefined;
  const [, describe] = Object.entries(systems).find(([name]) => parseGoBoolean(get(name)) === true) ?? [];
  return describe?.(get);
}

function jobOf({ tag, source, ...job }: Omit<CiJob, "ref"> & { tag: string | undefined }): CiJob {
  const { request, branch } = job;
  return { ...job, ref: refOf({ request, tag, branch }), source: sourceOf(source) };
}

/** https://docs.github.com/en/actions/reference/workflows-and-actions/variables */
function describeGithub(get: Get): CiJob {
  const ref = get("GITHUB_REF");
  const sha = get("GITHUB_SHA");
  const name = get("GITHUB_EVENT_NAME") ?? "";
  const event = readEvent(get("GITHUB_EVENT_PATH"));
  const head = asRecord(event?.head_commit);
  const [server, path] = [get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY")];
  const isRequest = name.startsWith("pull_request") || ref?.startsWith("refs/pull/") === true;
  const number = /^refs\/pull\/(\d+)\//.exec(ref ?? "")?.[1] ?? numberIn(String(event?.number ?? ""));
  const request = isRequest ? number : undefined;
  return {
    system: "GitHub",
    // The ref of pull_request_target is the base branch, whose files such a job builds only by mistake.
    ref: request === undefined ? ref : refOf({ request, tag: undefined, branch: undefined }),
    sha,
    branch: branchEvents.includes(name) ? /^refs\/heads\/(.+)$/.exec(ref ?? "")?.[1] : undefined,
    request,
    baseBranch: get("GITHUB_BASE_REF"),
    defaultBranch: asText(asRecord(event?.repository)?.default_branch),
    isScheduled: name === "schedule",
    source: server === undefined || path === undefined ? undefined : `${server}/${path}`,
    committedAt: head?.id === sha ? timeOf(asText(head?.timestamp)) : undefined,
  };
}

/**
 * Events whose ref is the branch that the job builds. Others (`workflow_run`, `issue_comment`) have the default branch as their
 * ref, but may build a pull request's files.
 */
const branchEvents = ["push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"];

/** Reads the event that started the job. It contains facts that no variable has. */
function readEvent(path: string | undefined) {
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
