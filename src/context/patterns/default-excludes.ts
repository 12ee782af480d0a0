import { posix } from "node:path";
import { compileIgnorePattern } from "./path-pattern.ts";
import type { Rule } from "./rules.ts";

/**
 * Left out of every COPY and ADD, at any depth, whatever `.dockerignore` says: what version control, interpreters,
 * package managers and test runners write for themselves alone, and two names that build tools commonly write to
 * (`dist`, `build`). Other names that a project may well have chosen (`venv`, `target`, `vendor`, `out`,
 * `*.egg-info`) are not in it.
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

/** What projects call sources of their own by, too. */
const ambiguous: readonly string[] = ["build", "dist"];

/** Paths that default excludes left out: those first that somebody may miss. */
export function ambiguousFirst(paths: Iterable<string>): string[] {
  const isSurprising = (path: string) => ambiguous.includes(posix.basename(path));
  return [...paths].sort((one, other) => Number(isSurprising(other)) - Number(isSurprising(one)));
}

export function defaultExcludeRules(): readonly Rule[] {
  return defaultExcludes.map((text) => ({
    text,
    isNegated: false,
    pattern: compileIgnorePattern(`**/${text}`),
    origin: { kind: "default" },
  }));
}
