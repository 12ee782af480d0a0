import { basename } from "node:path";
import { dockerRules, type Finding, isDockerRule, lineOf, pageOf } from "../../../check/rules.ts";
import { withHint } from "../../../errors.ts";
import { digestOf } from "../../../image/digest.ts";

/**
 * Returns what Docker's checks have found, as a metadata file has it: docker's action for GitHub shows it beside the lines of the
 * Dockerfile. Texts are in Base64.
 */
export function vertexWarnings(
  findings: readonly Finding[],
  { absolutePath, text }: { absolutePath: string; text: string },
): object[] {
  const sourceInfo = { filename: basename(absolutePath), data: base64(text), language: "Dockerfile" };
  return findings.flatMap((finding) => {
    const { rule, range } = finding;
    if (!isDockerRule(rule)) return [];
    const line = lineOf(finding);
    const place = line === undefined ? "" : ` (line ${line})`;
    return {
      vertex: digestOf(text),
      level: 1,
      short: base64(`${rule}: ${withHint(finding)}${place}`),
      detail: [base64(dockerRules[rule])],
      url: pageOf(rule),
      sourceInfo,
      ...(range && { range: [{ start: { line: line ?? range.start }, end: { line: range.end } }] }),
    };
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
