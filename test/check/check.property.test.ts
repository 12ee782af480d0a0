/** A check of any Dockerfile ends with a report. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { dialects } from "../../src/builder/dialect.ts";
import { checkDockerfile } from "../../src/check/check.ts";
import { describeReport, renderCheckReport } from "../../src/check/report.ts";
import { openBuildContext } from "../../src/context/build-context.ts";
import { localFileSystem } from "../../src/context/file-system/file-system.ts";
import { ignoreRules } from "../../src/context/patterns/ignore.ts";
import { defaultPlatform, parsePlatform } from "../../src/image/platform.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { runs } from "../support/random.ts";

const names = [
  "FROM",
  "RUN",
  "COPY",
  "ADD",
  "ENV",
  "ARG",
  "WORKDIR",
  "USER",
  "LABEL",
  "EXPOSE",
  "CMD",
  "from",
  "Copy",
];
const words = [
  ...[
    "a",
    "alpine",
    "as",
    "AS",
    "b/",
    "/srv/",
    ".",
    "..",
    "*",
    "**",
    "[",
    "[a-",
    "$A",
    "${A:-b}",
    "${A",
    "${A:?}",
  ],
  ...[
    "A=1",
    "A=$A",
    "$PATH",
    "--chown=x",
    "--chmod=u+x",
    "--from=a",
    "--platform=$TARGETPLATFORM",
    "--parents",
  ],
  ...[
    "--exclude=*",
    "<<EOF",
    "EOF",
    '["a", "b"]',
    '"',
    "'",
    "\\",
    "https://h/x",
    "https://",
    "git@h:x.git",
    "\u001b[31m",
  ],
];
const line = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom(...names), fc.array(fc.constantFrom(...words), { maxLength: 5 }))
      .map(([name, rest]) => [name, ...rest].join(" ")),
  },
  { weight: 1, arbitrary: fc.string() },
  {
    weight: 1,
    arbitrary: fc.constantFrom("# check=skip=all", "# check=error=true", "# check=x", "# A", "", "EOF", "\\"),
  },
);

test("a check of random instructions ends with a report in both formats", async () => {
  const directory = temporaryDirectory();
  writeFiles(directory, { a: "a", "b/c": "c" });
  const context = await openBuildContext(directory, "/");
  const ignore = ignoreRules([], { defaultExcludes: true });
  const platform = parsePlatform(defaultPlatform);
  const service = {
    platforms: { build: platform, target: platform, mayDiffer: false },
    isCertain: true,
    startsFromScratch: false,
    mounts: { secrets: true, agents: true },
  };
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 12 }), fc.boolean(), async (lines, startsWell) => {
      const text = [...(startsWell ? ["FROM alpine AS base"] : []), ...lines].join("\n");
      const report = await checkDockerfile({
        ...{
          text,
          path: "Dockerfile",
          context,
          files: localFileSystem,
          ignore,
          contexts: new Map(),
          buildArgs: new Map([["A", "x"]]),
          lock: undefined,
          changes: [],
          allowsLocalFrom: false,
          dialect: dialects.default,
          target: undefined,
          uncachedStages: [],
          turnsIntoErrors: false,
          network: { mode: "default", allowsHost: false, hosts: [] },
        },
        signal: new AbortController().signal,
        given: { secrets: [], agents: [] },
        platform: undefined,
        assumeService: async () => service,
      });
      expect(renderCheckReport(report)).toContain("Check complete, ");
      expect(renderCheckReport(report)).not.toContain("\u001b");
      for (const { rule, message } of [
        ...describeReport(report).errors,
        ...describeReport(report).warnings,
      ]) {
        expect(rule).toMatch(/^[A-Z]\w+$/);
        expect(message).not.toBe("");
      }
    }),
    { numRuns: runs(500) },
  );
});
