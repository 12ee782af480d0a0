/** What tags and labels are made of: the commit that is built, and how the CI system describes it. */
import { parseGoBoolean } from "../../../go/boolean.ts";
import { asRecord, asText } from "../../../service/http/json.ts";
import { describeJob, readEvent } from "../options/automatic-scopes.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitFacts {
  /** `refs/heads/main`, `refs/tags/v1.2.3` or `refs/pull/7`; `undefined` for a commit that nothing names. */
  ref: string | undefined;
  /** The commit. */
  sha: string | undefined;
  defaultBranch: string | undefined;
  /** The branch that a pull request is for. */
  baseBranch: string | undefined;
  isScheduled: boolean;
  /** The address of the repository, for a browser. */
  source: string | undefined;
  /** Milliseconds since the epoch. */
  committedAt: number | undefined;
}

/** Returns what a CI job says; `undefined` outside of the systems that are known. */
export function factsOfJob(environment: Environment): GitFacts | undefined {
  const get = (name: string) => environment[name] || undefined;
  if (parseGoBoolean(get("GITHUB_ACTIONS")) === true) return factsOfGithub(get);
  const job = describeJob(environment);
  if (job === undefined) return undefined;
  const first = (...names: string[]) => names.map(get).find((value) => value !== undefined);
  const tag = first("CI_COMMIT_TAG", "BUILDKITE_TAG", "CIRCLE_TAG");
  return {
    ref: refOf({ request: job.request, tag, branch: job.branch }),
    sha: first("CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1"),
    ...{ defaultBranch: job.main, baseBranch: job.target },
    isScheduled: [get("CI_PIPELINE_SOURCE"), get("BUILDKITE_SOURCE")].includes("schedule"),
    source: sourceOf(first("CI_PROJECT_URL", "BUILDKITE_REPO", "CIRCLE_REPOSITORY_URL")),
    committedAt: timeOf(get("CI_COMMIT_TIMESTAMP")),
  };
}

/** https://docs.github.com/en/actions/reference/workflows-and-actions/variables */
function factsOfGithub(get: (name: string) => string | undefined): GitFacts {
  const event = readEvent(get("GITHUB_EVENT_PATH"));
  const repository = asRecord(event?.repository);
  const head = asRecord(event?.head_commit);
  const sha = get("GITHUB_SHA");
  const name = get("GITHUB_EVENT_NAME");
  const number = asRecord(event?.pull_request)?.number;
  // The event's ref is the base branch, whose files such a job builds only by mistake.
  const isOfTarget = name === "pull_request_target" && typeof number === "number";
  const [server, path] = [get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY")];
  return {
    ref: isOfTarget ? `refs/pull/${number}` : get("GITHUB_REF")?.replace(/^(refs\/pull\/\d+)\/.*$/, "$1"),
    sha,
    defaultBranch: asText(repository?.default_branch),
    baseBranch: get("GITHUB_BASE_REF"),
    isScheduled: name === "schedule",
    source: server === undefined || path === undefined ? undefined : `${server}/${path}`,
    committedAt: head?.id === sha ? timeOf(asText(head?.timestamp)) : undefined,
  };
}

export function refOf({
  request,
  tag,
  branch,
}: Readonly<Record<"request" | "tag" | "branch", string | undefined>>): string | undefined {
  if (request !== undefined) return `refs/pull/${request}`;
  if (tag !== undefined) return `refs/tags/${tag}`;
  return branch === undefined ? undefined : `refs/heads/${branch}`;
}

/** Returns the address of a repository for a browser, without a login: of `git@HOST:PATH.git`, too. */
export function sourceOf(remote: string | undefined): string | undefined {
  const [, host, path] = /^(?:ssh:\/\/)?[\w.-]+@([\w.-]+)(?::\d+\/|:|\/)(.+)$/.exec(remote ?? "") ?? [];
  const url = URL.parse(host === undefined ? (remote ?? "") : `https://${host}/${path}`);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/(\.git)?\/*$/, "")}`;
}

export function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
