import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join, normalize, posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { displayPath } from "../file-system/display-path.ts";
import { fileError, isMissing } from "../file-system/file-error.ts";
import { locateBeside } from "../file-system/locate-beside.ts";
import { GlobSyntaxError, validPattern } from "./glob.ts";
import { compileIgnorePattern } from "./path-pattern.ts";
import { type Rule, type RuleCursor, type RuleInheritance, type RuleOrigin, startRules } from "./rules.ts";

/** The paths that a build context leaves out: those that either list matches. */
export interface IgnoreRules {
  /** The ignore file's rules, in its order. */
  readonly rules: readonly Rule[];
  /** The specification's own list; empty if it is switched off. */
  readonly defaults: readonly Rule[];
  readonly inheritance: RuleInheritance;
}

interface IgnoreOptions {
  /** True if the specification's list of excludes applies too. */
  defaultExcludes: boolean;
  /** Default: `every`, as the specification says. */
  inheritance?: RuleInheritance;
}

export function ignoreRules(rules: readonly Rule[], options: IgnoreOptions): IgnoreRules {
  let defaults: readonly Rule[] | undefined;
  return {
    rules,
    inheritance: options.inheritance ?? "every",
    // Compiled only when something is copied: a build of RUNs alone ends sooner.
    get defaults() {
      defaults ??= options.defaultExcludes ? defaultExcludeRules() : [];
      return defaults;
    },
  };
}

/** Returns the same cursors for the same rules, so that all instructions of a build share their caches of names. */
export function startIgnoreRules(ignore: IgnoreRules): readonly RuleCursor[] {
  let cursors = started.get(ignore);
  if (cursors === undefined) {
    cursors = [ignore.rules, ignore.defaults]
      .filter((list) => list.length > 0)
      .map((list) => startRules(list, ignore.inheritance));
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
 * @param platform of the machine that the file is on: on Windows a backslash separates names, as in docker's client, and escapes nothing
 * @throws BoughError of kind `usage` that names file and line of every invalid pattern
 */
export function parseIgnoreFile(
  text: string,
  path: string,
  platform: NodeJS.Platform = process.platform,
): Rule[] {
  const rules: Rule[] = [];
  const problems: string[] = [];
  text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .forEach((content, index) => {
      if (content.startsWith("#")) return;
      const line = index + 1;
      try {
        const rule = parseRule(content, { kind: "file", path, line }, platform);
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
function parseRule(line: string, origin: RuleOrigin, platform?: NodeJS.Platform): Rule | undefined {
  const text = line.trim();
  if (text === "") return undefined;
  const isNegated = text.startsWith("!");
  const given = isNegated ? text.slice(1).trim() : text;
  const written = platform === "win32" ? given.replaceAll("\\", "/") : given;
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

interface ReadIgnoreRulesOptions extends IgnoreOptions {
  /** The context directory. Messages name the ignore file in it with this path. */
  contextPath: string;
  /** `undefined` if there is no Dockerfile on disk. */
  dockerfilePath: string | undefined;
  /** Returns the path to open for an ignore file, `undefined` if it does not exist. Messages name the given path. */
  locate?: ((path: string) => string | undefined) | undefined;
  /** Called for an ignore file that is a link out of its directory, and so is not read. */
  warn?: (message: string) => void;
}

/**
 * Reads the ignore rules of a build: those of `<Dockerfile name>.dockerignore` beside the Dockerfile, else those of
 * `.dockerignore` in the context root, else none. https://docs.docker.com/build/concepts/context/#filename-and-location
 *
 * @throws BoughError if the file can't be read or has an invalid pattern
 */
export function readIgnoreRules(options: ReadIgnoreRulesOptions): IgnoreRules {
  const { warn = () => {}, locate = (path) => locateInDirectory(path, warn) } = options;
  for (const path of ignoreFileCandidates(options)) {
    const text = readText(path, locate(path));
    // A file that came with a fetched context was not written for this machine.
    const platform = options.locate === undefined ? process.platform : "linux";
    if (text !== undefined) return ignoreRules(parseIgnoreFile(text, path, platform), options);
  }
  return ignoreRules([], options);
}

function locateInDirectory(path: string, warn: (message: string) => void): string | undefined {
  try {
    const place = locateBeside(path);
    if (place === undefined)
      warn(`${displayPath(path)} is a link out of its directory: it is not applied, as in Docker`);
    return place;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError("read", path, error);
  }
}

/** Returns the possible paths of the ignore file. The first that exists has the rules. */
export function ignoreFileCandidates({
  contextPath,
  dockerfilePath,
}: Pick<ReadIgnoreRulesOptions, "contextPath" | "dockerfilePath">): string[] {
  const ofContext = join(contextPath, ".dockerignore");
  return dockerfilePath === undefined
    ? [ofContext]
    : [normalize(`${dockerfilePath}.dockerignore`), ofContext];
}

/** Returns `undefined` if there is no such file. */
function readText(path: string, at: string | undefined): string | undefined {
  if (at === undefined) return undefined;
  let descriptor: number;
  try {
    // Non-blocking: opening a named pipe would otherwise hang until a process writes to it.
    descriptor = openSync(at, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError("read", path, error);
  }
  try {
    if (!fstatSync(descriptor).isFile())
      throw new BoughError(`cannot read ${displayPath(path)}: it is not a regular file`, { kind: "usage" });
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(descriptor));
  } catch (error) {
    if (error instanceof BoughError) throw error;
    if (error instanceof TypeError)
      throw new BoughError(`cannot read ${displayPath(path)}: it is not UTF-8 text`, {
        kind: "usage",
        hint: "Save it as UTF-8.",
        cause: error,
      });
    throw fileError("read", path, error);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Names left out of every COPY and ADD, at any depth, whatever `.dockerignore` says: files that version control, interpreters,
 * package managers and test runners write only for themselves, and two common output directories of build tools (`dist`,
 * `build`). Other names that a project may have chosen itself (`venv`, `target`, `vendor`, `out`, `*.egg-info`) are not included.
 */
export const defaultExcludes: readonly string[] = [
  ".git",
  ".hg",
  ".svn",
  "__pycache__",
  "*.pyc",
  "*.pyo",
  ".venv",
  ".tox",
  ".nox",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  "node_modules",
  "dist",
  "build",
  ".DS_Store",
];

/** Default excludes that some projects use for their own sources. */
const ambiguous: readonly string[] = ["build", "dist"];

/** Sorts paths that default excludes left out: those that a user is likely to miss come first. */
export function ambiguousFirst(paths: Iterable<string>): string[] {
  const isSurprising = (path: string) => ambiguous.includes(posix.basename(path));
  return [...paths].sort((one, other) => Number(isSurprising(other)) - Number(isSurprising(one)));
}

function defaultExcludeRules(): readonly Rule[] {
  return defaultExcludes.map((text) => ({
    text,
    isNegated: false,
    pattern: compileIgnorePattern(`**/${text}`),
    origin: { kind: "default" },
  }));
}
