/** Runs bough with a small disk at `disk` in the working directory, which other processes do not see. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Ended } from "./bough.ts";
import { endOf } from "./ended.ts";

interface SmallDisk {
  workingDirectory: string;
  environment: Record<string, string>;
  bytes: number;
  /** The bytes that are in use before bough starts. */
  usedBytes: number;
  stdin?: Uint8Array<ArrayBuffer>;
}

const script = `mount -t tmpfs -o size="$BYTES" tmpfs disk && head -c "$USED" /dev/zero > disk/ballast || exit 99
"$@"
code=$?
cd disk && find * -type f | sort
exit $code`;

/** Runs bough, and then lists the paths of files on the disk at the end of standard output. */
export async function runOnSmallDisk(words: readonly string[], options: SmallDisk): Promise<Ended> {
  const { workingDirectory, environment, bytes, usedBytes, stdin } = options;
  mkdirSync(join(workingDirectory, "disk"), { recursive: true });
  const own = process.getuid?.() === 0 ? ["--mount"] : ["--user", "--map-root-user", "--mount"];
  const main = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
  const child = Bun.spawn(["unshare", ...own, "sh", "-c", script, "sh", ...main, ...words], {
    cwd: workingDirectory,
    env: { PATH: process.env.PATH, BYTES: String(bytes), USED: String(usedBytes), ...environment },
    stdin: stdin ?? "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  return endOf(child);
}
