import { lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bootId, currentProcess, isRunning } from "../../process-identity.ts";

/**
 * Where something large may lie for a while: not in /tmp, which may be memory. Nothing is made; what killed processes have left
 * there is removed.
 */
export function scratchPath(
  purpose: "git" | "push" | "export" | "base",
  { TMPDIR }: Readonly<Record<string, string | undefined>>,
): string {
  const directory = TMPDIR || "/var/tmp";
  removeAbandoned(directory);
  return join(directory, `bough-${purpose}-${processTable()}_${currentProcess()}_${crypto.randomUUID()}`);
}

const named = /^bough-(?:git|push|export|base)-(?:(\d+)_([^_]+)_)?[0-9a-f-]{36}$/;
/** After so long what a process elsewhere has left is of no use, whether or not that lives. */
const keptMilliseconds = 24 * 60 * 60 * 1000;

/** Only what is this user's: nobody else can put a link into that. */
function removeAbandoned(directory: string): void {
  for (const name of namesIn(directory)) {
    const [isScratch, table, owner = ""] = named.exec(name) ?? [];
    if (isScratch === undefined) continue;
    const path = join(directory, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || stats.uid !== process.getuid?.()) continue;
    const isOld = stats.mtimeMs < Date.now() - keptMilliseconds;
    const isKnown = table === processTable() && owner.startsWith(bootId() ?? "");
    if (isKnown ? isRunning(owner) : !isOld) continue;
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // The next one tries again.
    }
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // What is to be put there says why it can't be.
    return [];
  }
}

/** Tells containers apart that share a directory: whether a process of another one lives can't be seen. */
function processTable(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}
