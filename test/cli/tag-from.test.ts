/** Tags and labels of `--tag-from`: the rules of docker/metadata-action, and the same commit in GitHub, in GitLab and on a laptop. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { chooseTags } from "../../src/cli/builds/tags/choose-tags.ts";
import { type GitFacts, sourceOf } from "../../src/cli/builds/tags/git-facts.ts";
import { readTagRules } from "../../src/cli/builds/tags/rules.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

setDefaultTimeout(60_000);

const sha = "860c1904a1ce19322e91ac35af1ab07466440c37";
const now = Date.UTC(2020, 0, 10, 0, 30);
const facts: GitFacts = {
  ...{ ref: "refs/heads/main", sha, defaultBranch: "main", baseBranch: undefined, isScheduled: false },
  ...{ source: undefined, committedAt: Date.UTC(2019, 11, 31, 23, 5, 9) },
};
const at = (ref: string, more: Partial<GitFacts> = {}): GitFacts => ({ ...facts, ref, ...more });
const scheduled = at("refs/heads/main", { isScheduled: true });

describe("rules", () => {
  // The tables of metadata-action's documentation, and what it does where these say nothing.
  test.each<[ref: GitFacts | string, rules: string[], tags: string[]]>([
    ["refs/heads/main", ["auto"], ["main"]],
    ["refs/heads/my/branch", ["branch"], ["my-branch"]],
    ["refs/heads/main", ["type=ref,event=branch"], ["main"]],
    ["refs/pull/2", ["auto"], ["pr-2"]],
    ["refs/pull/2", ["type=ref,event=pr,prefix="], ["2"]],
    ["refs/tags/v1.2.3", ["auto"], ["v1.2.3", "latest"]],
    ["refs/tags/v1.2.3", ["tag", "latest=false"], ["v1.2.3"]],
    [scheduled, ["auto"], ["nightly", "main"]],
    [scheduled, ["schedule,pattern={{date 'YYYYMMDD'}}"], ["20200110"]],
    [scheduled, ["schedule,pattern={{date 'YYYYMMDD-HHmm' tz='Asia/Tokyo'}}"], ["20200110-0930"]],
    ["refs/heads/main", ["schedule"], []],
    ["refs/tags/v1.2.3", ["semver"], ["1.2.3", "latest"]],
    [
      "refs/tags/v1.2.3",
      ["type=semver,pattern={{version}}", "type=semver,pattern={{major}}.{{minor}}"],
      ["1.2.3", "1.2", "latest"],
    ],
    ["refs/tags/v1.2.3", ["semver,pattern={{raw}}"], ["v1.2.3", "latest"]],
    ["refs/tags/v2.0.8-beta.67", ["semver", "semver,pattern={{major}}.{{minor}}"], ["2.0.8-beta.67"]],
    ["refs/tags/v2.0.8-beta.67", ["semver,pattern={{raw}}"], ["v2.0.8-beta.67"]],
    ["refs/tags/app/v1.2.3", ["semver,match=v(.*)"], ["1.2.3", "latest"]],
    ["refs/tags/nightly", ["semver"], []],
    ["refs/heads/main", ["semver,value=v3.4.5+build"], ["3.4.5", "latest"]],
    ["refs/tags/1.2.3", ["type=pep440,pattern={{raw}}"], ["1.2.3", "latest"]],
    ["refs/tags/v1.2.3", ["pep440"], ["1.2.3", "latest"]],
    ["refs/tags/1.2.3", ["type=pep440,pattern={{major}}.{{minor}}"], ["1.2", "latest"]],
    ["refs/tags/1.2.3", ["type=pep440,pattern=v{{major}}"], ["v1", "latest"]],
    ["refs/tags/v1.2.3rc2", ["type=pep440,pattern={{raw}}"], ["v1.2.3rc2"]],
    ["refs/tags/1.2.3rc2", ["type=pep440,pattern={{version}}"], ["1.2.3rc2"]],
    ["refs/tags/p1/v1.2.3", ["type=pep440,pattern={{version}},match=v(\\d.\\d.\\d)$"], ["1.2.3", "latest"]],
    ["refs/tags/1.2.3rc2", ["type=pep440,pattern={{major}}.{{minor}}"], ["1.2.3rc2"]],
    ["refs/tags/1.2.3post1", ["type=pep440,pattern={{major}}.{{minor}}"], ["1.2.3.post1"]],
    ["refs/tags/1.2.3beta2", ["type=pep440,pattern={{major}}.{{minor}}"], ["1.2.3b2"]],
    ["refs/tags/1.0dev4", ["type=pep440,pattern={{major}}.{{minor}}"], ["1.0.dev4"]],
    ["refs/tags/1", ["pep440,pattern={{major}}.{{minor}}.{{patch}}"], ["1.0.0", "latest"]],
    ["refs/tags/V01.02-Preview_3-4+Ubuntu-01", ["pep440"], ["1.2rc3.post4-ubuntu.1"]],
    ["refs/tags/1!2.0", ["pep440"], ["1-2.0", "latest"]],
    ["refs/heads/main", ["pep440,value=3.4.5"], ["3.4.5", "latest"]],
    ["refs/heads/main", ["pep440"], []],
    ["refs/tags/1.2.3-x", ["pep440"], []],
    ["refs/tags/v1.2.3", ["match,pattern=v(\\d.\\d),group=1"], ["1.2", "latest"]],
    ["refs/tags/p1/v1", ["match,pattern=/P1\\/(.*)/i,group=1"], ["v1", "latest"]],
    ["refs/tags/v1", ["match,pattern=x"], []],
    ["refs/heads/main", ["edge"], ["edge"]],
    ["refs/heads/dev", ["edge"], []],
    ["refs/heads/dev", ["edge,branch=dev"], ["edge"]],
    ["refs/heads/main", ["sha"], ["sha-860c190"]],
    ["refs/heads/main", ["type=sha,format=long,prefix="], [sha]],
    ["refs/heads/main", ["type=raw,value=latest,enable={{is_default_branch}}"], ["latest"]],
    ["refs/heads/dev", ["type=raw,value=latest,enable={{is_default_branch}}"], []],
    [
      "refs/heads/dev",
      ["raw,value={{branch}}-{{sha}}-{{commit_date 'YYYYMMDDHHmmss'}}"],
      ["dev-860c190-20191231230509"],
    ],
    ["refs/heads/main", ["next"], []],
    // The highest priority comes first, and decides about latest.
    ["refs/tags/v1.2.3", ["sha", "raw,value=x", "semver"], ["1.2.3", "x", "sha-860c190", "latest"]],
    ["refs/tags/v1.2.3", ["sha,priority=9999", "semver"], ["sha-860c190", "1.2.3"]],
    ["refs/tags/v1.2.3", ["semver", "suffix=-alpine,onlatest=true"], ["1.2.3-alpine", "latest-alpine"]],
    ["refs/tags/v1.2.3", ["semver,prefix=r", "prefix=x-"], ["r1.2.3", "latest"]],
    ["refs/heads/main", ["branch", "latest=true"], ["main", "latest"]],
  ])("of %j with %j are %j", (given, rules, tags) => {
    const of = typeof given === "string" ? at(given) : given;
    if (rules[0] === "next") return expect(() => readTagRules(rules)).toThrow('unknown type "next"');
    return expect(chooseTags(readTagRules(rules), of, now).tags).toEqual(tags);
  });

  test.each([
    ["colour", 'unknown type "colour"'],
    ["type=ref", 'unknown type ""'],
    ["semver,colour=red", "unknown field colour"],
    ["raw", "value= is missing"],
    ["sha,format=tiny", "format is short or long"],
    ["latest=maybe", "latest="],
    ["prefix=x,colour=red", "unknown field colour"],
    ["sha,priority=high", "priority is a number"],
    ["raw,value={{colour}}", "{{colour}} is not known here"],
    ["raw,value=x-{{sha", "x-{{sha has {{ without }}"],
    ["raw,value={key}", "a tag of a rule has no content key"],
    ["sha,prefix={key}-", "a tag of a rule has no content key"],
    ["raw,value=x,enable=perhaps", "enable is true or false"],
    ["raw,value={{date 'Q'}}", 'unknown letter "Q"'],
    ["raw,value={{date 'YYYY' tz='Mars/North'}}", 'unknown time zone "Mars/North"'],
    ["match,pattern=(,value=x", "( is not a regular expression"],
    // About other commits than this one.
    ["semver,pattern={{major", "{{major has {{ without }}"],
    ["match,pattern=(", "( is not a regular expression"],
    ["pep440,match=[", "[ is not a regular expression"],
  ])("%s is refused", (rule, message) => {
    expect(() => chooseTags(readTagRules([rule]), facts, now)).toThrow(message);
  });

  test("say why a tag gives nothing", () => {
    const { warnings } = chooseTags(readTagRules(["semver", "pep440"]), at("refs/tags/nightly"), now);
    expect(warnings).toEqual([
      "--tag-from semver: nightly is not a version such as 1.2.3 (https://semver.org)",
      "--tag-from pep440: nightly is not a version such as 1.2.3rc1 (https://peps.python.org/pep-0440)",
    ]);
  });
});

test.each([
  ["git@github.com:owner/repo.git", "https://github.com/owner/repo"],
  ["ssh://git@host.example:2222/owner/repo.git", "https://host.example/owner/repo"],
  ["https://user:password@gitlab.example/a/b.git", "https://gitlab.example/a/b"],
  ["/srv/git/repo", undefined],
])("the source of %s is %s", (remote, source) => expect(sourceOf(remote)).toBe(source));

describe("a build", () => {
  const directory = temporaryDirectory();
  const git = (...words: string[]) => {
    const options = ["-c", "user.name=me", "-c", "user.email=me@host.example", "-c", "tag.gpgsign=false"];
    const environment = { ...process.env, GIT_COMMITTER_DATE: "2024-05-06T07:08:09Z", HOME: directory };
    const { stdout } = Bun.spawnSync(["git", ...options, ...words], { cwd: directory, env: environment });
    return stdout.toString().trim();
  };
  writeFiles(directory, {
    Dockerfile: "FROM scratch\nCOPY Dockerfile /\n",
    "docker-bake.json": JSON.stringify({
      target: {
        default: {
          tags: ["HOST.example/App", "other:dev"],
          labels: { "org.opencontainers.image.source": "mine" },
        },
        untagged: {},
      },
    }),
  });
  git("init", "-q", "-b", "main");
  git("remote", "add", "origin", "git@host.example:me/app.git");
  git("add", ".");
  git("commit", "-q", "-m", "first", "--date", "2024-05-06T07:08:09Z");
  git("tag", "v1.2.3");
  const head = git("rev-parse", "HEAD");

  const github = {
    ...{ CI: "true", GITHUB_ACTIONS: "true", GITHUB_SHA: head, GITHUB_EVENT_NAME: "push" },
    ...{ GITHUB_SERVER_URL: "https://host.example", GITHUB_REPOSITORY: "me/app" },
  };
  const gitlab = {
    CI: "true",
    GITLAB_CI: "true",
    CI_COMMIT_SHA: head,
    CI_PROJECT_URL: "https://host.example/me/app",
  };
  const state = temporaryDirectory();

  async function tagsOf(environment: Record<string, string>, words: readonly string[]) {
    const metadata = join(state, "metadata.json");
    const built = await runBough(
      [
        "build",
        "--docker",
        ".",
        "-t",
        "HOST.example/App",
        "-t",
        "other:dev",
        "--metadata-file",
        metadata,
        ...words,
      ],
      { workingDirectory: directory, environment: { BOUGH_HOME: state, ...environment } },
    );
    expect(built.exitCode, built.stderr).toBe(0);
    const { image, tags } = await Bun.file(metadata).json();
    const shown = await runBough(["-f", "json", "inspect", image], {
      workingDirectory: directory,
      environment: { BOUGH_HOME: state },
    });
    return { tags, labels: JSON.parse(shown.stdout).config.Labels as unknown, stderr: built.stderr };
  }

  const rules = ["semver", "semver,pattern={{major}}.{{minor}}", "branch", "sha"].map(
    (rule) => `--tag-from=${rule}`,
  );
  const short = head.slice(0, 7);

  test.each([
    ["GitHub", { ...github, GITHUB_REF: "refs/tags/v1.2.3" }, undefined],
    ["GitLab", { ...gitlab, CI_COMMIT_TAG: "v1.2.3" }, undefined],
    ["a laptop with a checkout of the tag", {}, "v1.2.3"],
  ] as const)("has the tags and labels of a release in %s", async (_, environment, checkout) => {
    git("checkout", "-q", checkout ?? "main");
    const { tags, labels } = await tagsOf(environment, rules);
    expect(tags).toEqual([
      ...["1.2.3", "1.2", `sha-${short}`, "latest"].map((tag) => `host.example/app:${tag}`),
      "other:dev",
    ]);
    expect(labels).toEqual({
      "org.opencontainers.image.created": "2024-05-06T07:08:09Z",
      "org.opencontainers.image.revision": head,
      "org.opencontainers.image.source": "https://host.example/me/app",
      "org.opencontainers.image.version": "1.2.3",
    });
  });

  test.each([
    ["GitHub", { ...github, GITHUB_REF: "refs/heads/main" }],
    ["GitLab", { ...gitlab, CI_COMMIT_BRANCH: "main" }],
    ["a laptop", {}],
  ] as const)("has the tags of a branch in %s", async (_, environment) => {
    git("checkout", "-q", "main");
    const { tags } = await tagsOf(environment, [
      ...rules,
      "--label",
      "org.opencontainers.image.version=mine",
    ]);
    expect(tags).toEqual(["host.example/app:main", `host.example/app:sha-${short}`, "other:dev"]);
  });

  test.each([
    ["GitHub", { ...github, GITHUB_EVENT_NAME: "pull_request", GITHUB_REF: "refs/pull/7/merge" }],
    ["GitLab", { ...gitlab, CI_MERGE_REQUEST_IID: "7" }],
  ] as const)("has the tag of a pull request in %s, and none where no rule fits", async (_, environment) => {
    expect((await tagsOf(environment, ["--tag-from=auto"])).tags).toEqual([
      "host.example/app:pr-7",
      "other:dev",
    ]);
    const { tags, stderr } = await tagsOf(environment, ["--tag-from=semver"]);
    expect(tags).toEqual(["other:dev"]);
    expect(stderr).toContain("--tag-from: no rule gives a tag for refs/pull/7");
  });

  test.each(["build --docker . -t HOST.example/App --print-key", "bake --print-keys default"])(
    "%s: the labels give each machine the same content key, until the next commit",
    async (line) => {
      git("checkout", "-q", "main");
      const clone = join(temporaryDirectory(), "clone");
      git("clone", "-q", "--no-hardlinks", directory, clone);
      Bun.spawnSync(["git", "remote", "set-url", "origin", "git@host.example:me/app.git"], { cwd: clone });
      const keyIn = async (workingDirectory: string) => {
        const { exitCode, stdout, stderr } = await runBough([...line.split(" "), "--tag-from=branch"], {
          workingDirectory,
          environment: { BOUGH_HOME: temporaryDirectory() },
        });
        expect(exitCode, stderr).toBe(0);
        return stdout;
      };
      const keys = [await keyIn(directory), await keyIn(directory), await keyIn(clone)];
      expect(keys[0]).toMatch(/[0-9a-f]{64}/);
      expect(new Set(keys).size).toBe(1);
      if (line.startsWith("build")) {
        const { tags } = await tagsOf({}, ["-t", "keyed:{key}", "--tag-from=branch"]);
        expect(tags).toContain(`keyed:${keys[0]?.trim()}`);
      }
      const words = [
        "-c",
        "user.name=me",
        "-c",
        "user.email=me@host.example",
        "commit",
        "-q",
        "--allow-empty",
      ];
      Bun.spawnSync(["git", ...words, "-m", "next"], { cwd: clone });
      expect(await keyIn(clone)).not.toBe(keys[0]);
    },
  );

  test("of bake tags all targets that have a name, and keeps labels of the files", async () => {
    git("checkout", "-q", "main");
    const environment = { BOUGH_HOME: state };
    const words = ["bake", "--print", "--tag-from", "branch", "default", "untagged"];
    const { stdout, stderr } = await runBough(words, { workingDirectory: directory, environment });
    const { target } = JSON.parse(stdout || stderr);
    expect(target.default.tags).toEqual(["host.example/app:main", "other:dev"]);
    expect(target.default.labels).toMatchObject({
      "org.opencontainers.image.revision": head,
      "org.opencontainers.image.source": "mine",
    });
    expect(target.untagged.tags).toBeUndefined();
  });

  test.each([
    ["without a name", ["--tag", "app:1"], {}, "needs a name without a tag"],
    ["without a commit", ["--tag", "app"], { GIT: "none" }, "there is no commit here"],
  ])("%s is refused", async (_, words, { GIT }: { GIT?: string }, message) => {
    const other = join(state, "no-checkout");
    mkdirSync(other, { recursive: true });
    writeFiles(other, { Dockerfile: "FROM scratch\n" });
    const context = GIT === undefined ? "." : other;
    const { exitCode, stderr } = await runBough(["build", context, "--tag-from", "auto", ...words], {
      workingDirectory: directory,
      environment: { BOUGH_HOME: state },
    });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test("of a checkout of somebody else runs no program that its settings name", async () => {
    const other = join(state, "hostile");
    const marker = join(state, "has-run");
    writeFiles(other, { Dockerfile: "FROM scratch\nCOPY Dockerfile /\n" });
    const inOther = (...words: string[]) => git("-C", other, ...words);
    inOther("init", "-q", "-b", "main");
    inOther("add", ".");
    inOther("commit", "-q", "-m", "first");
    const commit = inOther("rev-parse", "HEAD");
    for (const [name, value] of Object.entries({
      "core.repositoryFormatVersion": "1",
      "extensions.partialClone": "evil",
      "remote.evil.url": other,
      "remote.evil.promisor": "true",
      "remote.evil.uploadpack": `touch ${marker};`,
    }))
      inOther("config", name, value);
    // The commit would have to be fetched.
    rmSync(join(other, ".git/objects", commit.slice(0, 2), commit.slice(2)));
    inOther("log", "-1");
    expect(existsSync(marker)).toBe(true);
    rmSync(marker);
    await runBough(["build", other, "--tag-from", "sha", "--tag", "app"], {
      workingDirectory: directory,
      environment: { BOUGH_HOME: state },
    });
    expect(existsSync(marker)).toBe(false);
  });
});
