import { join } from "node:path";
import { ownName, removeAbandoned } from "../../left-behind.ts";

/**
 * Where something large may lie for a while: not in /tmp, which may be memory. Nothing is made; what killed processes have left
 * there is removed.
 */
export function scratchPath(
  purpose: "git" | "context" | "push" | "export" | "base",
  { TMPDIR }: Readonly<Record<string, string | undefined>>,
): string {
  const directory = TMPDIR || "/var/tmp";
  removeAbandoned(directory, /^bough-(?:git|context|push|export|base)-/);
  return join(directory, `bough-${purpose}-${ownName()}`);
}
