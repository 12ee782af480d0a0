import { join } from "node:path";
import { ownName, removeAbandoned } from "../../left-behind.ts";

/**
 * Returns a path for large temporary files: not in /tmp, which may be in memory. Nothing is created there, but files that killed
 * processes have left are removed.
 */
export function scratchPath(
  purpose: "git" | "context" | "push" | "export" | "base",
  { TMPDIR }: Readonly<Record<string, string | undefined>>,
): string {
  const directory = TMPDIR || "/var/tmp";
  removeAbandoned(directory, /^bough-(?:git|context|push|export|base)-/);
  return join(directory, `bough-${purpose}-${ownName()}`);
}
