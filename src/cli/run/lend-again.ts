import { statSync } from "node:fs";
import type { LentFile, Loan } from "../../service/wire/file.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import type { FailedStep } from "./failed-step.ts";

const shownFiles = 5;

/** A failed step's mounts, with their files of this machine lent again. */
export interface LentAgain {
  mounts: NonNullable<InstanceRequest["mounts"]>;
  end(): void;
}

/** Lends the files of a failed step's mounts to a service in this process again. The loans of the step's own request have ended. */
export async function lendAgain(
  step: FailedStep,
  { service }: Pick<Connection, "service">,
  { runtime, log }: Pick<Invocation, "runtime" | "log">,
): Promise<LentAgain> {
  const { lendFiles: lend } = service;
  const { mounts = [] } = step.fields;
  const loans: Loan[] = [];
  const end = () => {
    for (const loan of loans) loan.end();
  };
  if (lend === undefined) return { mounts, end };
  const mounted: typeof mounts = [];
  for (const mount of mounts) {
    if (!("lent_files" in mount)) {
      mounted.push(mount);
      continue;
    }
    const files = step.lentToMounts?.[mount.lent_files] ?? [];
    const loan = lend(await findMountedFiles(files, runtime.signal, log.warn));
    loans.push(loan);
    mounted.push({ ...mount, lent_files: loan.id });
  }
  return { mounts: mounted, end };
}

/**
 * Returns the files of a failed step's mount as they are now, since no image has their old contents. Calls `warn` if some have
 * changed since, or are gone.
 */
async function findMountedFiles(
  lent: readonly LentFile[],
  signal: AbortSignal,
  warn: (message: string) => void,
): Promise<readonly LentFile[]> {
  const found: LentFile[] = [];
  const changed: string[] = [];
  for (const file of lent) {
    signal.throwIfAborted();
    const now = "uuid" in file ? file : await describeNow(file);
    if (now !== undefined) found.push(now);
    if (now?.sha256 !== file.sha256 && "path" in file) changed.push(file.path);
  }
  if (changed.length > 0)
    warn(`changed since the step failed, and mounted as they are now: ${list(changed)}`);
  return found;
}

/** Returns `undefined` for a file that is gone or can't be read. */
async function describeNow<File extends LentFile & { path: string }>(file: File): Promise<File | undefined> {
  try {
    const stats = statSync(file.path);
    if (!stats.isFile()) return undefined;
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const chunk of Bun.file(file.path).stream()) hasher.update(chunk);
    const sha256 = hasher.digest("hex");
    return sha256 === file.sha256 ? file : { ...file, sha256, size: stats.size, mtime: stats.mtimeMs / 1000 };
  } catch {
    return undefined;
  }
}

/** Lists the first few paths. */
function list(paths: readonly string[]): string {
  const others = paths.length - shownFiles;
  return [...paths.slice(0, shownFiles), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}
