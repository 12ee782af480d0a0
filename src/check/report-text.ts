import { renderProblem } from "../dockerfile/problems/dockerfile-error.ts";
import { visible } from "../visible.ts";
import type { CheckReport } from "./check.ts";
import type { Finding } from "./finding.ts";
import { pageOf } from "./rules.ts";

/** Renders the report as text, much as `docker build --check` prints it. */
export function renderReport({ source, warnings, errors }: CheckReport): string {
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
  const text = range === undefined ? visible(message) : renderProblem(source, { ...rest, message, range });
  return hint === undefined ? text : `${text}\n${visible(hint)}`;
}

function summarize({ length: warnings }: readonly Finding[], { length: errors }: readonly Finding[]): string {
  const counts = [
    ...(errors === 0 ? [] : [`${errors} error${errors === 1 ? "" : "s"}`]),
    ...(warnings === 0 ? [] : [`${warnings} warning${warnings === 1 ? "" : "s"}`]),
  ];
  if (counts.length === 0) return "Check complete, no warnings found.";
  return `Check complete, ${counts.join(" and ")} ${errors + warnings === 1 ? "has" : "have"} been found!`;
}
