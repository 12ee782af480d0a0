/**
 * Runs the golden files in `test/cases/ignore`. Each has a section `rules`, an ignore file, and then either
 * `paths`, where `-` means left out and `+` kept, with the line of the rule that decides, or `error`, the
 * message. `UPDATE_GOLDEN=1` writes the current results.
 */
import { test } from "bun:test";
import { type IgnoreRules, ignoreRules, parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import { decidePath, isMatch, type Rule } from "../../src/context/patterns/rules.ts";
import { BoughError } from "../../src/errors.ts";
import { expectGolden } from "../support/golden.ts";
import { formatSections, readCases, readPath, writePath } from "./case-file.ts";

for (const { name, path, sections } of readCases("ignore")) {
  test(`ignore rules: ${name}`, () => {
    const text = sections.find(({ title }) => title === "rules")?.body ?? "";
    const actual = formatSections(
      sections.map((section) => {
        if (section.title === "paths") return { ...section, body: decideAll(parse(text), section.body) };
        if (section.title === "error") return { ...section, body: refusal(text) };
        return section;
      }),
    );
    expectGolden(path, actual);
  });
}

function parse(text: string): IgnoreRules {
  return ignoreRules(parseIgnoreFile(text, ".dockerignore"), { defaultExcludes: true });
}

function decideAll(ignore: IgnoreRules, body: string): string {
  return body
    .split("\n")
    .map((line) => {
      const [, written] = /^[-+ ]\s*("(?:[^"\\]|\\.)*"|\S+)/.exec(line) ?? [];
      if (written === undefined) return line;
      const path = readPath(written);
      const own = decidePath(ignore.rules, path, "every");
      const byDefault = decidePath(ignore.defaults, path, "every");
      const decision = isMatch(byDefault) ? byDefault : own;
      return `${isMatch(decision) ? "-" : "+"} ${writePath(path).padEnd(30)} ${origin(decision)}`.trimEnd();
    })
    .join("\n");
}

function origin(rule: Rule | undefined): string {
  switch (rule?.origin.kind) {
    case undefined:
      return "";
    case "file":
      return `line ${rule.origin.line}`;
    case "default":
      return `default ${rule.text}`;
    case "flag":
      return "flag";
  }
}

function refusal(text: string): string {
  try {
    parseIgnoreFile(text, ".dockerignore");
    return "none\n";
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    return `${error.message}\nhint: ${error.hint}\n`;
  }
}
