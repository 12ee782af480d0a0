/**
 * A second implementation of Docker's matching, slow and obvious: without compiled patterns. It follows moby's patternmatcher, which
 * turns a pattern into a regular expression.
 */
import type { RuleInheritance } from "../../src/context/patterns/rules.ts";

/** Returns whether the rules ignore a path. */
export function isIgnored(lines: readonly string[], path: string, inheritance: RuleInheritance): boolean {
  return inheritance === "every" ? referenceDecision(lines, path).ignored : isIgnoredByBuildKit(lines, path);
}

/** BuildKit goes from the top directory to the path, and notes in each directory which rules have taken effect. */
function isIgnoredByBuildKit(lines: readonly string[], path: string): boolean {
  const names = path.split("/");
  let effective = new Set<number>();
  let ignored = false;
  for (const [depth] of names.entries()) {
    const above = effective;
    effective = new Set();
    ignored = false;
    for (const [index, line] of lines.entries()) {
      const isNegated = line.startsWith("!");
      const here = names.slice(0, depth + 1).join("/");
      const isMatched =
        above.has(index) || (isNegated === ignored && referenceMatch(isNegated ? line.slice(1) : line, here));
      if (!isMatched) continue;
      effective.add(index);
      ignored = !isNegated;
    }
  }
  return ignored;
}

/** Returns the line number of the rule that decides about a path, and whether it ignores the path. Every rule counts below. */
export function referenceDecision(
  lines: readonly string[],
  path: string,
): { line: number; ignored: boolean } {
  const names = path.split("/");
  let decision = { line: 0, ignored: false };
  lines.forEach((line, index) => {
    const isNegated = line.startsWith("!");
    const pattern = isNegated ? line.slice(1) : line;
    const isMatched = names.some((_, last) => referenceMatch(pattern, names.slice(0, last + 1).join("/")));
    if (isMatched) decision = { line: index + 1, ignored: !isNegated };
  });
  return decision;
}

/** True if a pattern (clean, no leading slash) matches exactly this path. */
function referenceMatch(pattern: string, path: string): boolean {
  const isPlainSuffix = /^\*\*[^/*?[\]\\][^*?[\]\\]*$/.test(pattern);
  return isPlainSuffix ? path.endsWith(pattern.slice(2)) : matches(pattern, path);
}

/** Go's filepath.Match: each name matches separately, and `**` is two stars. */
export function referenceGoMatch(pattern: string, path: string): boolean {
  return matches(pattern.replace(/\*+/g, "*"), path);
}

function matches(pattern: string, path: string): boolean {
  if (pattern === "") return path === "";
  if (pattern.startsWith("**")) {
    const rest = pattern.slice(pattern[2] === "/" ? 3 : 2);
    if (rest === "") return true;
    if (matches(rest, path)) return true;
    return [...path].some((character, at) => character === "/" && matches(rest, path.slice(at + 1)));
  }
  if (pattern.startsWith("*")) {
    const rest = pattern.slice(1);
    return matches(rest, path) || (path !== "" && path[0] !== "/" && matches(pattern, path.slice(1)));
  }
  if (path === "") return false;
  if (pattern.startsWith("?")) return path[0] !== "/" && matches(pattern.slice(1), path.slice(1));
  if (pattern.startsWith("\\")) return path[0] === pattern[1] && matches(pattern.slice(2), path.slice(1));
  if (pattern.startsWith("[")) {
    const { has, length } = readClass(pattern);
    return has(path[0] ?? "") && matches(pattern.slice(length), path.slice(1));
  }
  return pattern[0] === path[0] && matches(pattern.slice(1), path.slice(1));
}

function readClass(pattern: string): { has: (character: string) => boolean; length: number } {
  const isNegated = pattern[1] === "^";
  const members = new Set<string>();
  let at = isNegated ? 2 : 1;
  const readOne = (): string => {
    if (pattern[at] === "\\") at++;
    return pattern[at++] ?? "";
  };
  do {
    const low = readOne();
    if (pattern[at] === "-") {
      at++;
      const high = readOne();
      for (let code = low.charCodeAt(0); code <= high.charCodeAt(0); code++)
        members.add(String.fromCharCode(code));
    } else {
      members.add(low);
    }
  } while (pattern[at] !== "]");
  return { has: (character) => members.has(character) !== isNegated, length: at + 1 };
}
