import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { defaultExcludeRules } from "./default-excludes.ts";
import { GlobSyntaxError, validPattern } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { type Rule, type RuleCursor, type RuleOrigin, startRules } from "./rules.ts";

/** The paths that a build context leaves out: those that either list matches. */
export interface IgnoreRules {
  /** The ignore file's rules, in its order. */
  readonly rules: readonly Rule[];
  /** The specification's own list; empty if it is switched off. */
  readonly defaults: readonly Rule[];
}

/** @param options.defaultExcludes true if the specification's list applies too */
export function ignoreRules(rules: readonly Rule[], options: { defaultExcludes: boolean }): IgnoreRules {
  let defaults: readonly Rule[] | undefined;
  return {
    rules,
    // Compiled only when something is copied: a build of RUNs alone ends sooner.
    get defaults() {
      defaults ??= options.defaultExcludes ? defaultExcludeRules() : [];
      return defaults;
    },
  };
}

/** Returns the same cursors for the same rules, so that what they remember of names serves every instruction of a build. */
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
 * Parses the rules of an ignore file as Docker does: a `#` starts a comment only as the first character of a line; white space
 * around a pattern and a leading `/` are dropped; paths are cleaned.
 *
 * @param path of the file, for messages
 * @throws BoughError of kind `usage` that names file and line of every invalid pattern
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
      hint: "To match a wildcard character itself, write it in brackets: [*], [?], [[].",
    });
  }
  return rules;
}

/**
 * Parses the patterns of `--exclude`, in order.
 *
 * @throws BoughError that names the invalid pattern
 */
export function parseExcludeFlags(patterns: readonly string[]): Rule[] {
  return patterns.flatMap(
    (pattern) =>
      validPattern(`--exclude=${displayPath(pattern)}`, () => parseRule(pattern, { kind: "flag" })) ?? [],
  );
}

/** Returns a rule's name for a message: ``the rule `*.log` (.dockerignore:3)``. */
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

/** Parses a rule like moby's ignorefile.ReadAll and patternmatcher.New. */
function parseRule(line: string, origin: RuleOrigin): Rule | undefined {
  const text = line.trim();
  if (text === "") return undefined;
  const isNegated = text.startsWith("!");
  const written = isNegated ? text.slice(1).trim() : text;
  const cleaned = written === "" ? "/" : cleanPath(written);
  if (isNegated && cleaned === "/")
    throw new GlobSyntaxError("a `!` must be followed by a path below the context directory");
  // moby trims and cleans twice, which matters for white space at the end of a directory's name.
  const pattern = cleaned === "/" ? cleaned : cleanPath(cleaned.replace(/^\//, "").trim());
  return { text, isNegated, pattern: compileIgnorePattern(pattern), origin };
}

/** Cleans a path like Go's filepath.Clean. */
function cleanPath(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith("/") ? normal.slice(0, -1) : normal;
}
