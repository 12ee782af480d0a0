import { type HostFile, HostFiles } from "../../service/wire/file.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { type Staged, type StagedEntry, wireTime } from "../state/staged.ts";
import { findFurtherPaths } from "./hard-links.ts";
import { uploadStaged } from "./upload.ts";

/** Returns true if the service, in this process, reads staged files of this machine where they are. */
export function readsHostFiles(staged: Staged, { supports }: BuildServices): boolean {
  return supports.isInThisProcess && staged.values().some(isLocal);
}

/** Returns staged files for a service in this process. Uploads those that are not files of this machine. `root`: the prefix that makes their paths absolute. */
export async function hostFilesOf(staged: Staged, build: BuildJob, root = ""): Promise<HostFiles> {
  const others = new Map<string, StagedEntry>();
  const isOther = (entry: StagedEntry) => entry.type === "file" && !isLocal(entry);
  if (staged.values().some(isOther))
    for (const [path, entry] of staged) if (isOther(entry)) others.set(path, entry);
  const ids = await uploadStaged(others, build);
  return new HostFiles(() => hostFiles(staged, ids, root));
}

function isLocal(entry: StagedEntry): boolean {
  return entry.type === "file" && entry.content.kind === "local";
}

function* hostFiles(
  staged: Staged,
  ids: ReadonlyMap<string, string>,
  root: string,
): Generator<HostFile, undefined> {
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
