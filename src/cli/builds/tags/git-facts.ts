/** What tags and labels are made of: the commit that is built, and how the CI system describes it. */

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
