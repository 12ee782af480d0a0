import { posix } from "node:path";
import { compileIgnorePattern } from "./path-pattern.ts";
import type { Rule } from "./rules.ts";

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

/** Names that projects also use for sources of their own. */
const ambiguous: readonly string[] = ["build", "dist"];

/** Sorts paths that default excludes left out: those that may be missed come first. */
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
