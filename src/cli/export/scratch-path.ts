import { join } from "node:path";

/** Where something large may lie for a while: not in /tmp, which may be memory. Nothing is made. */
export function scratchPath(
  purpose: string,
  { TMPDIR }: Readonly<Record<string, string | undefined>>,
): string {
  return join(TMPDIR || "/var/tmp", `bough-${purpose}-${crypto.randomUUID()}`);
}
