import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { defaultExcludeRules } from "./default-excludes.ts";
import { GlobSyntaxError, validPattern } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { type Rule, type RuleCursor, type RuleOrigin, startRules } from "./rules.ts";

/** What a build context leaves out: a path is ignored if either list matches it. */
export interface IgnoreRules {
  /** The ignore file's rules, in its order. */
  readonly rules: readonly Rule[];
  /** The specification's own list, or empty where it is switched off. */
  readonly defaults: readonly Rule[];
}

/** @param options.defaultExcludes whether the specification's list applies too. */
export function ignoreRules(rules: readonly Rule[], options: { defaultExcludes: boolean }): IgnoreRules {
  let defaults: readonly Rule[] | undefined;
  return {
    rules,
    // Not before something is copied: a build of RUNs alone is over sooner.
    get defaults() {
      defaults ??= options.defaultExcludes ? defaultExcludeRules() : [];
      return defaults;
    },
  };
}

/** The same cursors for the same rules: what they have learned of names serves every instruction of a build. */
export function startIgnoreRules(ignore: IgnoreRules): readonly RuleCursor[] {
  let cursors = started.get(ignore);
  if (cursors === undefined) {
    cursors = [ignore.rules, ignore.defaults].filter((list) => list.length > 0).map(startRules);
    started.set(ignore, cursors);
  }
  return cursors;
}

const started = new WeakMap<IgnoreRules, readonly RuleCursor[]>();

/**
 * The rules of an ignore file as Docker reads it: a comment only where `#` is a line's first character, white
 * space around a pattern dropped, paths cleaned, a leading `/` dropped.
 *
 * @param path of the file, for messages
 * @throws BoughError of kind `usage` that names file and line of every pattern that is not valid
 */
export function parseIgnoreFile(text: string, path: string): Rule[] {
  const rules: Rule[] = [];
  const problems: string[] = [];
  text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .forEach((content, index) => {
      if (content.startsWith("#")) return;
      const line = index + 1;
      try {
        const rule = parseRule(content, { kind: "file", path, line });
        if (rule !== undefined) rules.push(rule);
      } catch (error) {
        if (!(error instanceof GlobSyntaxError)) throw error;
        problems.push(
          `${displayPath(path)}:${line}: the pattern \`${displayPath(content.trim())}\` is not valid: ${error.message}`,
        );
      }
    });
  if (problems.length > 0) {
    throw new BoughError(problems.join("\n"), {
      kind: "usage",
      hint: "A wildcard that is meant as itself is written in brackets: [*], [?], [[].",
    });
  }
  return rules;
}

/**
 * The patterns of `--exclude`, in their order.
 *
 * @throws BoughError that names the pattern that is not valid
 */
export function parseExcludeFlags(patterns: readonly string[]): Rule[] {
  return patterns.flatMap(
    (pattern) =>
      validPattern(`--exclude=${displayPath(pattern)}`, () => parseRule(pattern, { kind: "flag" })) ?? [],
  );
}

/** How a message names a rule: ``the rule `*.log` (.dockerignore:3)``. */
export function describeRule(rule: Rule): string {
  const text = `\`${displayPath(rule.text)}\``;
  switch (rule.origin.kind) {
    case "file":
      return `the rule ${text} (${displayPath(rule.origin.path)}:${rule.origin.line})`;
    case "default":
      return `the default exclude ${text}`;
    case "flag":
      return `--exclude ${text}`;
  }
}

/** Follows moby's ignorefile.ReadAll and patternmatcher.New. */
function parseRule(line: string, origin: RuleOrigin): Rule | undefined {
  const text = line.trim();
  if (text === "") return undefined;
  const isNegated = text.startsWith("!");
  const written = isNegated ? text.slice(1).trim() : text;
  const cleaned = written === "" ? "/" : cleanPath(written);
  if (isNegated && cleaned === "/") throw new GlobSyntaxError("a `!` has to re-include something");
  // moby trims and cleans twice, which tells where white space stands at the end of a directory's name.
  const pattern = cleaned === "/" ? cleaned : cleanPath(cleaned.replace(/^\//, "").trim());
  return { text, isNegated, pattern: compileIgnorePattern(pattern), origin };
}

/** Go's filepath.Clean. */
function cleanPath(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith("/") ? normal.slice(0, -1) : normal;
}
