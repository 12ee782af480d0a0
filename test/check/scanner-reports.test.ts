/** `bough build --check -f sarif` and `-f gitlab`, and the path that these and annotations give the Dockerfile. */
import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathOfDockerfile } from "../../src/cli/builds/annotate.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOf, type Schema } from "../support/json-schema.ts";

const text: Schema = {
  type: "object",
  required: ["text"],
  properties: { text: { type: "string", pattern: "." } },
};
const line: Schema = { type: "integer", minimum: 1 };
const closed = (properties: Record<string, Schema>, required = Object.keys(properties)): Schema => ({
  ...{ type: "object", properties, required, additionalProperties: false },
});

/** What version 2.1.0 of SARIF, and GitHub beyond it, demand of the parts that bough writes. */
const sarif = closed({
  $schema: { type: "string", pattern: "^https://.*sarif.*2\\.1\\.0" },
  version: { const: "2.1.0" },
  runs: {
    ...{ type: "array", minItems: 1 },
    items: closed({
      tool: closed({
        driver: closed({
          name: { const: "bough" },
          version: { type: "string" },
          rules: {
            type: "array",
            items: closed(
              {
                id: { type: "string" },
                shortDescription: text,
                helpUri: { type: "string", pattern: "^https://" },
              },
              ["id", "shortDescription"],
            ),
          },
        }),
      }),
      columnKind: { const: "utf16CodeUnits" },
      results: {
        type: "array",
        items: closed({
          ruleId: { type: "string" },
          ruleIndex: { type: "integer", minimum: 0 },
          level: { type: "string", pattern: "^(error|warning|note|none)$" },
          message: text,
          locations: {
            ...{ type: "array", minItems: 1 },
            items: closed({
              physicalLocation: closed({
                artifactLocation: closed(
                  { uri: { type: "string", pattern: "^[^ ]+$" }, uriBaseId: { type: "string" } },
                  ["uri"],
                ),
                region: closed({ startLine: line, startColumn: line, endLine: line, endColumn: line }, [
                  "startLine",
                ]),
              }),
            }),
          },
          partialFingerprints: { type: "object", additionalProperties: { type: "string" } },
        }),
      },
    }),
  },
});

/** https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format */
const codeQuality: Schema = {
  type: "array",
  items: closed({
    description: { type: "string", pattern: "." },
    check_name: { type: "string" },
    fingerprint: { type: "string", pattern: "^[0-9a-f]{64}$" },
    severity: { type: "string", pattern: "^(info|minor|major|critical|blocker)$" },
    location: closed({ path: { type: "string" }, lines: closed({ begin: line, end: line }) }),
  }),
};

const dockerfile = [
  "FROM base:1 AS Build",
  "RUN --mount=type=cach true",
  "COPY missing \\",
  "  /srv/",
  "ENV A $B",
  "ENV A $B",
].join("\n");

async function report(format: "sarif" | "gitlab", text = dockerfile, ...options: string[]) {
  const repository = temporaryDirectory();
  mkdirSync(join(repository, ".git"));
  writeFiles(repository, { "my #app/Dockerfile": text });
  const words = ["build", "--check", "--format", format, ...options, "my #app"];
  const ended = await runBough(words, {
    workingDirectory: repository,
    environment: { GITHUB_ACTIONS: "true" },
  });
  expect(ended.stderr).toBe("");
  return { exitCode: ended.exitCode, json: JSON.parse(ended.stdout) };
}

test("-f sarif is SARIF, with each rule and its page once, lines, columns, and a path in the repository", async () => {
  const { exitCode, json } = await report("sarif");
  expect(problemsOf(json, sarif)).toEqual([]);
  const [{ tool, results }] = json.runs;
  const { rules } = tool.driver;
  expect(rules.map((rule: { id: string }) => rule.id)).toEqual(
    [...new Set(results.map((result: { ruleId: string }) => result.ruleId))].toSorted(),
  );
  expect(
    results.map((each: { ruleId: string; ruleIndex: number }) => rules[each.ruleIndex].id === each.ruleId),
  ).not.toContain(false);
  // The file does not parse: nothing else is known of it.
  expect({ exitCode, results: results.map(brief) }).toEqual({
    exitCode: 2,
    results: [["error", "ParseError", "my%20%23app/Dockerfile", "2:5-2:22"]],
  });
});

test("warnings have Docker's pages, and lines of a whole instruction", async () => {
  const { exitCode, json } = await report(
    "sarif",
    dockerfile.replace("cach ", "cache,target=/c "),
    "--build-arg",
    "X=1",
  );
  expect(problemsOf(json, sarif)).toEqual([]);
  const [{ tool, results }] = json.runs;
  expect(exitCode).toBe(2);
  expect(results.map(brief)).toEqual([
    ["error", "InvalidSource", "my%20%23app/Dockerfile", "3:-4:"],
    ["warning", "UnusedBuildArg", "my%20%23app/Dockerfile", "1:-1:"],
    ["warning", "StageNameCasing", "my%20%23app/Dockerfile", "1:-1:"],
    ["warning", "LegacyKeyValueFormat", "my%20%23app/Dockerfile", "5:-5:"],
    ["warning", "UndefinedVar", "my%20%23app/Dockerfile", "5:-5:"],
    ["warning", "LegacyKeyValueFormat", "my%20%23app/Dockerfile", "6:-6:"],
    ["warning", "UndefinedVar", "my%20%23app/Dockerfile", "6:-6:"],
  ]);
  const pages = tool.driver.rules.map(({ id, helpUri }: { id: string; helpUri?: string }) => [id, helpUri]);
  expect(pages).toContainEqual(["UnusedBuildArg", undefined]);
  expect(pages).toContainEqual([
    "StageNameCasing",
    "https://docs.docker.com/go/dockerfile/rule/stage-name-casing/",
  ]);
});

test("-f gitlab is GitLab's code quality report; fingerprints differ, and stay when lines move", async () => {
  const fixed = dockerfile.replace("cach ", "cache,target=/c ");
  const [before, after] = [await report("gitlab", fixed), await report("gitlab", `# a comment\n\n${fixed}`)];
  expect(problemsOf(before.json, codeQuality)).toEqual([]);
  const prints = ({ json }: typeof before) => json.map((each: { fingerprint: string }) => each.fingerprint);
  expect(new Set(prints(before)).size).toBe(6);
  expect(prints(after)).toEqual(prints(before));
  const lines = ({ json }: typeof before) =>
    json.map(({ location }: { location: { lines: object } }) => location.lines);
  expect([lines(before)[0], lines(after)[0]]).toEqual([
    { begin: 3, end: 4 },
    { begin: 5, end: 6 },
  ]);
  expect(before.json[0]).toMatchObject({ severity: "critical", location: { path: "my #app/Dockerfile" } });
});

test("a fingerprint depends on the rule, what it is about and the text, not on the message or on other findings", async () => {
  const [two, one] = ["EXPOSE 1/TCP 2/TCP", "EXPOSE 2/TCP"].map((line) => ["FROM base:1", line].join("\n"));
  const prints = async (text: string | undefined, ...options: string[]) => {
    const { json } = await report("gitlab", text, "--docker", ...options);
    return json.map((each: { check_name: string; fingerprint: string }) => [
      each.check_name,
      each.fingerprint.slice(0, 16),
    ]);
  };
  // Another value here makes a finding new for each scanner that has seen it.
  expect(await prints(two, "--build-arg", "X=1", "--build-arg", "Y=1")).toEqual([
    ["UnusedBuildArg", "df4e2ec65fb56851"],
    ["UnusedBuildArg", "ec21e19f4dcfa3cd"],
    ["ExposeProtoCasing", "f7c4a058d4109da0"],
    ["ExposeProtoCasing", "f1c39058e90a97aa"],
  ]);
  expect(await prints(one, "--build-arg", "Y=1")).toEqual([
    ["UnusedBuildArg", "ec21e19f4dcfa3cd"],
    ["ExposeProtoCasing", "fa4a9d1ff1de6dd9"],
  ]);
});

test("a clean Dockerfile gives an empty report; such a format is refused elsewhere", async () => {
  expect(await report("gitlab", "FROM base:1 AS build\n")).toEqual({ exitCode: 0, json: [] });
  const { json } = await report("sarif", "FROM base:1 AS build\n");
  expect([problemsOf(json, sarif), json.runs[0].results]).toEqual([[], []]);
  const context = temporaryDirectory();
  for (const [words, message] of [
    [["build", "-f", "sarif"], "--format sarif needs --check"],
    [["build", "--check=warn", "-f", "gitlab"], "--format gitlab needs --check"],
    [["images", "-f", "sarif"], "--format takes table, json, csv or tsv"],
  ] as const) {
    const ended = await runBough(words, { workingDirectory: context });
    expect(ended).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringContaining(message) });
  }
});

describe("the Dockerfile's path in reports", () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, "checkout/.git"), { recursive: true });
  writeFiles(root, { "checkout/a/b/Dockerfile": "", "plain/app/Dockerfile": "", "x.Dockerfile": "" });
  const github = { GITHUB_SERVER_URL: "https://github.com", GITHUB_REPOSITORY: "Team/App" };
  const inside = (path: string) => ({ path, isInRepository: true });
  const outside = (path: string) => ({ path, isInRepository: false });
  test.each<[string, string, string[], Record<string, string>, { path: string; isInRepository: boolean }]>([
    ["a directory below the repository", "checkout", ["a/b"], {}, inside("a/b/Dockerfile")],
    ["from a directory of it", "checkout/a", ["b"], {}, inside("a/b/Dockerfile")],
    ["named by a file", "checkout/a", [".", "b/Dockerfile"], {}, inside("a/b/Dockerfile")],
    ["no repository: relative to the current directory", "plain", ["app"], {}, inside("app/Dockerfile")],
    [
      "no repository, but a workspace",
      "plain/app",
      ["."],
      { GITHUB_WORKSPACE: join(root, "plain") },
      inside("app/Dockerfile"),
    ],
    [
      "a file of another directory",
      "plain",
      ["app", "../x.Dockerfile"],
      {},
      outside(join(root, "x.Dockerfile")),
    ],
    ["standard input", "checkout", [".", "-"], {}, outside("-")],
    [
      "another repository",
      "checkout",
      ["https://github.com/o/r.git#main:sub"],
      github,
      outside("sub/Dockerfile"),
    ],
    [
      "the job's own repository, fetched",
      "checkout",
      ["https://github.com/team/app.git#main:sub"],
      github,
      inside("sub/Dockerfile"),
    ],
    ["an archive", "checkout", ["https://example.com/a.tar.gz"], {}, outside("Dockerfile")],
  ])("%s", (_, directory, [context = "", named], environment, expected) => {
    const runtime = { environment, workingDirectory: join(root, directory) };
    expect(pathOfDockerfile({ context, options: { dockerfile: named }, runtime }, "Dockerfile")).toEqual(
      expected,
    );
  });
});

function brief({
  level,
  ruleId,
  locations,
}: {
  level: string;
  ruleId: string;
  locations: [{ physicalLocation: { artifactLocation: { uri: string }; region: Record<string, number> } }];
}) {
  const { artifactLocation, region } = locations[0].physicalLocation;
  const { startLine, startColumn = "", endLine, endColumn = "" } = region;
  return [level, ruleId, artifactLocation.uri, `${startLine}:${startColumn}-${endLine}:${endColumn}`];
}
