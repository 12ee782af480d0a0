/** The report for programs that show findings beside the code: SARIF, and GitLab's code quality. */
import { maskSecrets } from "../dockerfile/secrets.ts";
import { sha256Of } from "../sha256.ts";
import { visible } from "../visible.ts";
import type { CheckReport } from "./check.ts";
import { type Finding, lineOf, textOf } from "./finding.ts";
import { dockerRules, errorRules, ownRules, pageOf } from "./rules.ts";

/** A finding as all of these formats have it. */
interface Reported {
  finding: Finding;
  level: "error" | "warning";
  message: string;
  /** The first line of the Dockerfile if the finding is about no line: the formats demand one. */
  line: number;
  /** Stays the same if lines move. */
  fingerprint: string;
}

/**
 * Returns SARIF 2.1.0, as GitHub's code scanning and editors read it. `path`: the Dockerfile's, relative to the repository, else
 * absolute.
 */
export function sarifOf(report: CheckReport, path: string, version: string) {
  const reported = reportedIn(report, path);
  const rules = [...new Set(reported.map(({ finding }) => finding.rule))].toSorted();
  const isRelative = !path.startsWith("/");
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "bough", version, rules: rules.map(describeRule) } },
        columnKind: "utf16CodeUnits",
        results: reported.map(({ finding, level, message, line, fingerprint }) => ({
          ruleId: finding.rule,
          ruleIndex: rules.indexOf(finding.rule),
          level,
          message: { text: message },
          locations: [
            {
              physicalLocation: {
                artifactLocation: isRelative
                  ? { uri: uriOf(path), uriBaseId: "%SRCROOT%" }
                  : { uri: `file://${uriOf(path)}` },
                region: regionOf(finding, line),
              },
            },
          ],
          partialFingerprints: { "boughFinding/v1": fingerprint },
        })),
      },
    ],
  };
}

function uriOf(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** Returns GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format */
export function codeQualityOf(report: CheckReport, path: string) {
  return reportedIn(report, path).map(({ finding, level, message, line, fingerprint }) => ({
    description: message,
    check_name: finding.rule,
    fingerprint,
    severity: level === "error" ? "critical" : "minor",
    location: { path, lines: { begin: line, end: Math.max(line, finding.range?.end ?? line) } },
  }));
}

function describeRule(rule: string) {
  const descriptions: Readonly<Record<string, string>> = { ...dockerRules, ...ownRules, ...errorRules };
  const page = pageOf(rule);
  return {
    id: rule,
    shortDescription: { text: descriptions[rule] ?? rule },
    ...(page === undefined ? {} : { helpUri: page }),
  };
}

function regionOf({ culprit, range }: Finding, line: number) {
  if (culprit === undefined) return { startLine: line, endLine: Math.max(line, range?.end ?? line) };
  const { column, length } = culprit;
  return { startLine: line, startColumn: column, endLine: line, endColumn: column + Math.max(1, length) };
}

function reportedIn({ errors, warnings, source }: CheckReport, path: string): Reported[] {
  /** The number of findings with the same identity so far. */
  const counts = new Map<string, number>();
  const describe = (level: Reported["level"]) => (finding: Finding) => {
    const message = visible(maskSecrets(textOf(finding)));
    const { start = 1, end = 0 } = finding.range ?? {};
    const text = source.lines.slice(start - 1, end).map((line) => line.trim());
    const identity = JSON.stringify([path, finding.rule, message.replace(/\bline \d+/g, "line"), text]);
    const count = counts.get(identity) ?? 0;
    counts.set(identity, count + 1);
    const fingerprint = sha256Of(JSON.stringify([identity, count]));
    return { finding, level, message, line: lineOf(finding) ?? 1, fingerprint };
  };
  return [...errors.map(describe("error")), ...warnings.map(describe("warning"))];
}
