import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import type { Instruction } from "../dockerfile/instruction.ts";
import { argumentWords } from "../dockerfile/instruction-words.ts";
import { renderProblem } from "../dockerfile/problems/problem.ts";
import { maskSecrets } from "../dockerfile/secrets.ts";
import { withHint } from "../errors.ts";
import { octalMode } from "../image/file-mode.ts";
import { sha256Of } from "../sha256.ts";
import { visible } from "../visible.ts";
import type { CheckReport } from "./check.ts";
import type { PlannedFile } from "./planned-file.ts";
import { dockerRules, errorRules, type Finding, lineOf, ownRules, pageOf } from "./rules.ts";

/** Returns the report as `-f json` prints it. Unknown values are null. */
export function describeReport({
  instructions,
  escape: escapeCharacter,
  files,
  warnings,
  errors,
}: CheckReport) {
  return {
    instructions: instructions.map((instruction) => describeInstruction(instruction, escapeCharacter)),
    files: files.map(describeFile),
    warnings: warnings.map(describeFinding),
    errors: errors.map(describeFinding),
  };
}

function describeInstruction(instruction: Instruction, escapeCharacter: string) {
  const { name, range, flags, original, heredocs } = instruction;
  return {
    line: range.start,
    endLine: range.end,
    name,
    flags: flags.map((flag) => ({ name: flag.name, value: flag.value ?? null })),
    original,
    args: argumentWords(instruction, escapeCharacter),
    form: formOf(instruction),
    heredocs: heredocs.map((document) => ({
      name: document.name,
      content: document.content,
      expand: document.expand,
      line: document.range.start,
      endLine: document.range.end,
    })),
  };
}

/** Returns null for instructions that run no command. */
function formOf(instruction: Instruction): "shell" | "exec" | null {
  if (!("command" in instruction) || instruction.command === undefined) return null;
  return instruction.command.form === "exec" ? "exec" : "shell";
}

function describeFile(file: PlannedFile) {
  const { line, type, source, context, destination, destinationIs, mode, uid, gid, size } = file;
  return {
    ...{ line, type, source },
    ...(context === undefined ? {} : { context }),
    destination: destination ?? null,
    destinationIs,
    mode: mode === undefined ? null : octalMode(mode),
    uid: uid ?? null,
    gid: gid ?? null,
    size: size ?? null,
  };
}

function describeFinding(finding: Finding) {
  return { rule: finding.rule, message: withHint(finding), line: lineOf(finding) ?? null };
}

/** Renders the report as text, much as `docker build --check` prints it. */
export function renderCheckReport({ source, warnings, errors }: CheckReport): string {
  const render = (kind: string) => (finding: Finding) =>
    `${kind}: ${heading(finding.rule)}\n${renderFinding(finding, source)}\n`;
  return [...errors.map(render("ERROR")), ...warnings.map(render("WARNING")), summarize(warnings, errors)]
    .join("\n")
    .concat("\n");
}

function heading(rule: string): string {
  const page = pageOf(rule);
  return page === undefined ? rule : `${rule} - ${page}`;
}

function renderFinding({ range, message, hint, ...rest }: Finding, source: CheckReport["source"]): string {
  const shown = String(message);
  const text =
    range === undefined ? visible(shown) : renderProblem(source, { ...rest, message: shown, range });
  return hint === undefined ? text : `${text}\n${visible(String(hint))}`;
}

function summarize({ length: warnings }: readonly Finding[], { length: errors }: readonly Finding[]): string {
  const counts = [
    ...(errors === 0 ? [] : [`${errors} error${errors === 1 ? "" : "s"}`]),
    ...(warnings === 0 ? [] : [`${warnings} warning${warnings === 1 ? "" : "s"}`]),
  ];
  if (counts.length === 0) return "Check complete, no warnings found.";
  return `Check complete, ${counts.join(" and ")} ${errors + warnings === 1 ? "has" : "have"} been found!`;
}

// The report for programs that show findings beside the code: SARIF, and GitLab's code quality.

/** A finding as all of these formats have it. */
interface Reported {
  finding: Finding;
  level: "error" | "warning";
  message: string;
  /** The first line of the Dockerfile if the finding is about no line: the formats demand one. */
  line: number;
  /** Stays the same if lines move, or if a later version says it in other words. */
  fingerprint: string;
}

/**
 * Returns SARIF 2.1.0, as GitHub's code scanning and editors read it. `path`: the Dockerfile's, relative to the repository, else
 * absolute.
 */
export function sarifOf(report: CheckReport, path: string, version: string) {
  const reported = reportedIn(report, path);
  const rules = [...new Set(reported.map(({ finding }) => finding.rule))].toSorted();
  const isRelative = !isAbsolute(path);
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
                  : { uri: pathToFileURL(path).href },
                region: regionOf(finding, line),
              },
            },
          ],
          partialFingerprints: { "boughFinding/v2": fingerprint },
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
    const message = visible(maskSecrets(String(withHint(finding))));
    const { start = 1, end = 0 } = finding.range ?? {};
    const text = source.lines.slice(start - 1, end).map((line) => line.trim());
    const identity = JSON.stringify([path, finding.rule, finding.subject ?? "", text]);
    const count = counts.get(identity) ?? 0;
    counts.set(identity, count + 1);
    const fingerprint = sha256Of(JSON.stringify([identity, count]));
    return { finding, level, message, line: lineOf(finding) ?? 1, fingerprint };
  };
  return [...errors.map(describe("error")), ...warnings.map(describe("warning"))];
}
