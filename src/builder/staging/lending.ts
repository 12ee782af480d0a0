import type { LendFiles, LentFile, Loan } from "../../service/wire/file.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { type Staged, type StagedEntry, wireTime } from "../state/staged.ts";
import { findFurtherPaths } from "./hard-links.ts";
import { uploadStaged } from "./upload.ts";

/** A loan with the lent files, so that they can be lent again. */
export interface StagedLoan extends Loan {
  files: Iterable<LentFile>;
}

/**
 * Lends staged files to a service in this process, which reads files of this machine in place. `root`: what their paths lack to be
 * absolute.
 */
export async function lendStaged(
  staged: Staged,
  lend: LendFiles,
  build: BuildJob,
  root = "",
): Promise<StagedLoan> {
  const others = new Map<string, StagedEntry>();
  const isOther = (entry: StagedEntry) => entry.type === "file" && !isLocal(entry);
  if (staged.values().some(isOther))
    for (const [path, entry] of staged) if (isOther(entry)) others.set(path, entry);
  const ids = await uploadStaged(others, build);
  const files = { [Symbol.iterator]: () => lentFiles(staged, ids, root) };
  return { ...lend(files), files };
}

/** Returns `undefined` if the service is in another process or there is nothing to lend. */
export async function lenderOf(staged: Staged, { supports }: BuildServices): Promise<LendFiles | undefined> {
  return staged.values().some(isLocal) ? supports.lending() : undefined;
}

function isLocal(entry: StagedEntry): boolean {
  return entry.type === "file" && entry.content.kind === "local";
}

function* lentFiles(
  staged: Staged,
  ids: ReadonlyMap<string, string>,
  root: string,
): Generator<LentFile, undefined> {
  const furtherPaths = findFurtherPaths(staged);
  for (const [path, entry] of staged) {
    if (entry.type !== "file") continue;
    const links = furtherPaths(path, entry)?.map((further) => `${root}${further}`);
    if (links === undefined) continue;
    const destination = `${root}${path}`;
    const { content, sha256, size, uid, gid, mode } = entry;
    const { attributes, replaces } = entry;
    const given = attributes === undefined && replaces === undefined ? {} : { attributes, replaces };
    const placed = { destination, sha256, size, uid, gid, mode, mtime: wireTime(entry), ...given };
    const file = links.length === 0 ? placed : { ...placed, links };
    const uuid = ids.get(sha256);
    if (content.kind === "local") yield { ...file, path: content.absolutePath };
    else if (uuid !== undefined) yield { ...file, uuid };
    else throw new Error(`no file id for ${destination}`);
  }
}
