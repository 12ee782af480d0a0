/** `--tag-from`: tags and labels of images from git and the CI system. */
import { resolve } from "node:path";
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import type { Surroundings } from "../../command-line/command.ts";
import { readContextSource } from "../../contexts/context-source.ts";
import { createGit } from "../../contexts/programs.ts";
import { chooseDialect } from "../options/dialect.ts";
import type { BuildInvocation } from "../request.ts";
import { factsOfCheckout } from "./checkout.ts";
import { chooseTags } from "./choose-tags.ts";
import { describeJob } from "./ci-job.ts";
import type { GitFacts } from "./git-facts.ts";
import { readTagRules } from "./rules.ts";

interface TagsFrom {
  /** Returns names with tags: those that have none get all that the rules give. */
  namesFrom(names: readonly string[]): string[];
  /** Labels of the image: revision, source, created, version. */
  labels: Readonly<Record<string, string>>;
}

/** Finds out what `--tag-from` gives; `undefined` without it. `directory`: a checkout, if there is one. */
export async function readTagsFrom(
  given: readonly string[],
  directory: string | undefined,
  { runtime, log }: Pick<Surroundings, "runtime" | "log">,
): Promise<TagsFrom | undefined> {
  if (given.length === 0) return undefined;
  const rules = readTagRules(given);
  const facts = await findFacts(runtime, directory);
  if (facts === undefined)
    throw usageError(
      wording`${{ option: "tag-from" }}: there is no commit here that tags could come from`,
      "Outside of GitHub Actions, GitLab, Buildkite and CircleCI the context is to be a checkout of git, and git is to be installed.",
    );
  const { tags, warnings } = chooseTags(rules, facts, runtime.clock.now());
  for (const warning of warnings) log.warn(warning);
  if (tags.length === 0)
    log.warn(`--tag-from: no rule gives a tag for ${facts.ref ?? "a commit without a branch or tag"}`);
  return {
    namesFrom: (names) => names.flatMap((name) => tagged(name, tags)),
    labels: labelsOf(facts, tags[0]),
  };
}

/** Returns the invocation of a build with what `--tag-from` gives, as if it had been written. */
export async function withTagsFrom(invocation: BuildInvocation): Promise<BuildInvocation> {
  const { options, runtime } = invocation;
  const source = readContextSource(invocation.context, runtime.workingDirectory);
  const from = await readTagsFrom(
    options["tag-from"] ?? [],
    source.kind === "directory" ? resolve(runtime.workingDirectory, source.path) : undefined,
    invocation,
  );
  if (from === undefined) return invocation;
  const { tag: names = [], label } = options;
  if (!names.some(isUntagged))
    throw usageError(
      wording`${{ option: "tag-from" }} needs a name without a tag`,
      wording`Write ${{ option: "tag", value: "registry.example/app" }}: it gets the tags.`,
    );
  const keepsLabels = chooseDialect(invocation).keepsConfiguration;
  // Those that are given come last, and count.
  const labels = new Map([...(keepsLabels ? Object.entries(from.labels) : []), ...(label ?? [])]);
  return { ...invocation, options: { ...options, tag: from.namesFrom(names), label: labels } };
}

/** What a job says comes before what its checkout says, which may be without a branch. */
async function findFacts(
  runtime: Surroundings["runtime"],
  directory: string | undefined,
): Promise<GitFacts | undefined> {
  const job = describeJob(runtime.environment);
  const isComplete = job?.sha !== undefined && job.committedAt !== undefined;
  if (isComplete || directory === undefined) return job;
  const isThere = Bun.which("git", { PATH: runtime.environment.PATH ?? "" }) !== null;
  const checkout = isThere ? await factsOfCheckout(directory, createGit(runtime), runtime.signal) : undefined;
  if (job === undefined || checkout === undefined) return job ?? checkout;
  const isSame = job.sha === undefined || job.sha === checkout.sha;
  return {
    ...job,
    sha: job.sha ?? checkout.sha,
    defaultBranch: job.defaultBranch ?? checkout.defaultBranch,
    source: job.source ?? checkout.source,
    committedAt: job.committedAt ?? (isSame ? checkout.committedAt : undefined),
  };
}

/** True for a name that rules give tags. */
function isUntagged(name: string): boolean {
  return !/:[^/]*$|@/.test(name);
}

function tagged(name: string, tags: readonly string[]): string[] {
  // As a repository's name in a pipeline may have capitals, which no image has.
  return isUntagged(name) ? tags.map((tag) => `${name.toLowerCase()}:${tag}`) : [name];
}

/** https://github.com/opencontainers/image-spec/blob/main/annotations.md. The time is the commit's: a rebuild has the same. */
function labelsOf(
  { sha, source, committedAt }: GitFacts,
  version: string | undefined,
): Record<string, string> {
  const created =
    committedAt === undefined ? undefined : new Date(committedAt).toISOString().replace(".000Z", "Z");
  const all = { revision: sha, source, created, version };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) =>
      value === undefined ? [] : [[`org.opencontainers.image.${name}`, value]],
    ),
  );
}
