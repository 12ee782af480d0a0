import type { Instruction } from "../dockerfile/instruction.ts";
import { argumentWords } from "../dockerfile/instruction-words.ts";
import { renderProblem } from "../dockerfile/problems/dockerfile-error.ts";
import { octalMode } from "../image/file-mode.ts";
import { visible } from "../visible.ts";
import type { CheckReport } from "./check.ts";
import { type Finding, lineOf, textOf } from "./finding.ts";
import type { PlannedFile } from "./planned-file.ts";
import { pageOf } from "./rules.ts";

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
  return { rule: finding.rule, message: textOf(finding), line: lineOf(finding) ?? null };
}

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
