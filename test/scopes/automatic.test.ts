/** `--cache auto` chooses the scopes of a build by the variables of the CI, or by the checkout. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chooseAutomatically } from "../../src/cli/builds/options/automatic-scopes.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { buildOn, newMachine } from "./machines.ts";

const gitHub = { CI: "true", GITHUB_ACTIONS: "true" };
const gitLab = { CI: "true", GITLAB_CI: "true", CI_DEFAULT_BRANCH: "main" };
const buildkite = { CI: "true", BUILDKITE: "true", BUILDKITE_PIPELINE_DEFAULT_BRANCH: "main" };
const circle = { CI: "true", CIRCLECI: "true" };

/** Makes a checkout whose clone has recorded this default branch. */
function checkout(branch: string): string {
  const directory = temporaryDirectory();
  writeFiles(directory, { ".git/refs/remotes/origin/HEAD": `ref: refs/remotes/origin/${branch}\n` });
  return directory;
}

describe("in CI", () => {
  const cases: [string, Record<string, string>, string[], string | undefined][] = [
    [
      "GitHub, the default branch",
      { ...gitHub, GITHUB_EVENT_NAME: "push", GITHUB_REF: "refs/heads/main" },
      ["main"],
      "main",
    ],
    [
      "GitHub, another branch",
      { ...gitHub, GITHUB_EVENT_NAME: "push", GITHUB_REF: "refs/heads/feature/x" },
      ["feature/x", "main"],
      "feature/x",
    ],
    [
      "GitHub, a pull request",
      {
        ...gitHub,
        GITHUB_EVENT_NAME: "pull_request",
        GITHUB_REF: "refs/pull/7/merge",
        GITHUB_BASE_REF: "next",
      },
      ["pull/7", "next", "main"],
      "pull/7",
    ],
    [
      "GitHub, pull_request_target, with the rights of the base branch",
      {
        ...gitHub,
        GITHUB_EVENT_NAME: "pull_request_target",
        GITHUB_REF: "refs/heads/main",
        GITHUB_BASE_REF: "main",
      },
      ["pull/12", "main"],
      "pull/12",
    ],
    [
      "GitHub, workflow_run",
      { ...gitHub, GITHUB_EVENT_NAME: "workflow_run", GITHUB_REF: "refs/heads/main" },
      ["main"],
      undefined,
    ],
    [
      "GitHub, a tag",
      { ...gitHub, GITHUB_EVENT_NAME: "push", GITHUB_REF: "refs/tags/v1" },
      ["main"],
      undefined,
    ],
    ["GitLab, a branch", { ...gitLab, CI_COMMIT_BRANCH: "fix" }, ["fix", "main"], "fix"],
    [
      "GitLab, a merge request",
      { ...gitLab, CI_MERGE_REQUEST_IID: "3", CI_MERGE_REQUEST_TARGET_BRANCH_NAME: "main" },
      ["pull/3", "main"],
      "pull/3",
    ],
    ["GitLab, a tag", { ...gitLab, CI_COMMIT_TAG: "v1" }, ["main"], undefined],
    [
      "Buildkite, a branch",
      { ...buildkite, BUILDKITE_BRANCH: "main", BUILDKITE_PULL_REQUEST: "false" },
      ["main"],
      "main",
    ],
    [
      "Buildkite, a pull request from a branch called main",
      { ...buildkite, BUILDKITE_BRANCH: "main", BUILDKITE_PULL_REQUEST: "9" },
      ["pull/9", "main"],
      "pull/9",
    ],
    ["CircleCI, a branch", { ...circle, CIRCLE_BRANCH: "fix" }, ["fix", "trunk"], "fix"],
    [
      "CircleCI, a pull request",
      { ...circle, CIRCLE_BRANCH: "fix", CIRCLE_PULL_REQUEST: "https://host.test/team/app/pull/31" },
      ["pull/31", "trunk"],
      "pull/31",
    ],
    ["another CI", { CI: "true" }, ["trunk"], undefined],
  ];
  test.each(cases)("%s", (_, environment, from, to) => {
    const event = join(temporaryDirectory(), "event.json");
    writeFileSync(event, JSON.stringify({ number: 12, repository: { default_branch: "main" } }));
    const choice = chooseAutomatically({ ...environment, GITHUB_EVENT_PATH: event }, checkout("trunk"));
    expect(choice).toMatchObject({ from, ...(to === undefined ? {} : { to }) });
    expect(choice.to).toBe(to);
    expect(choice.reason).not.toBe("");
  });
});

describe("a branch name that is not a valid scope, or looks like a pull request, becomes a scope with a hash", () => {
  const scopeOf = (branch: string) => chooseAutomatically({ ...gitLab, CI_COMMIT_BRANCH: branch }, "/").to;
  test.each([
    ["Fix-Über/it", /^fix-ber-it-[0-9a-f]{8}$|^fix-.*-[0-9a-f]{8}$/],
    ["pull/7", /^pull-7-[0-9a-f]{8}$/],
    ["a".repeat(200), /^a{80}-[0-9a-f]{8}$/],
    ["a//b", /^a-b-[0-9a-f]{8}$/],
  ])("%s", (branch, scope) => expect(scopeOf(branch)).toMatch(scope));

  test("branches that differ only in case have different scopes", () =>
    expect(scopeOf("A")).not.toBe(scopeOf("a")));
});

describe("outside of CI, the scope of the default branch is read, as recorded in", () => {
  const worktree = () => {
    const [main, other] = [checkout("trunk"), temporaryDirectory()];
    writeFiles(main, { ".git/worktrees/other/commondir": "../..\n" });
    writeFiles(other, { ".git": `gitdir: ${main}/.git/worktrees/other\n` });
    return other;
  };
  const below = () => {
    const path = join(checkout("trunk"), "deep/er");
    mkdirSync(path, { recursive: true });
    return path;
  };
  const packed = () => {
    const directory = temporaryDirectory();
    writeFiles(directory, { ".git/packed-refs": `${"0".repeat(40)} refs/remotes/origin/master\n` });
    return directory;
  };
  test.each<[string, () => string, string[]]>([
    ["a checkout", () => checkout("trunk"), ["trunk"]],
    ["a directory in it", below, ["trunk"]],
    ["a worktree of it", worktree, ["trunk"]],
    ["a clone without a recorded default branch", packed, ["master"]],
    ["a directory that is not a checkout", temporaryDirectory, []],
  ])("%s", (_, make, from) => expect(chooseAutomatically({}, make())).toMatchObject({ from, to: undefined }));
});

test("a build logs its scopes, and the reason for them", async () => {
  const service = await startFakeService();
  service.state.addImage("base:1");
  const files = { Dockerfile: "FROM base:1\nRUN first\n" };
  const environment = { ...gitLab, CI_COMMIT_BRANCH: "main" };
  const built = await buildOn(newMachine(files), service, ["--cache", "auto"], { environment });
  expect(built.stderr).toContain(
    "[INFO] cache: reads main, writes main (GitLab builds branch main, and main is the default branch)\n",
  );
  const laptop = newMachine({ ...files, ".git/refs/remotes/origin/HEAD": "ref: refs/remotes/origin/main\n" });
  const found = await buildOn(laptop, service, ["--cache", "auto"]);
  expect(found.stderr).toContain(
    "[INFO] cache: reads main, writes none (not in CI, and main is the default branch)\n",
  );
  expect(found.runs).toEqual([]);
  await service.close();
});
