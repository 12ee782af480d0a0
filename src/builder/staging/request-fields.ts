/** The fields of a request for staged files, and the files to upload. */
import { octalMode } from "../../image/file-mode.ts";
import type { LocalFile } from "../../service/files/upload.ts";
import type { InstanceEntry, InstanceFile } from "../../service/wire/file.ts";
import { isRoot } from "../owners/ownership.ts";
import type { SmallContents } from "../prefetch.ts";
import type { FileFeatures, ServiceSupport } from "../service-support.ts";
import { type Staged, type StagedEntry, type StagedFile, wireTime } from "../state/staged.ts";
import { findFurtherPaths } from "./hard-links.ts";

/** `features`: what the service supports, without which times and attributes are left out. */
export function instanceEntries(
  staged: Staged,
  { attributes }: Pick<FileFeatures, "attributes">,
): Record<string, InstanceEntry> {
  return Object.fromEntries(
    entriesToMake(staged, { withTimes: attributes }).map(([path, entry]): [string, InstanceEntry] => [
      path,
      { ...instanceEntry(entry), ...(attributes ? attributesOf(entry) : {}) },
    ]),
  );
}

function instanceEntry(entry: Exclude<StagedEntry, StagedFile>): InstanceEntry {
  const { uid, gid } = entry;
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, uid, gid };
    case "directory": {
      const mode = entry.isExplicit ? { mode: octalMode(entry.mode) } : {};
      return { type: "directory", ...mode, uid, gid };
    }
    case "special": {
      const special = { type: "special", uid, gid, mode: octalMode(entry.mode) } as const;
      const { kind } = entry;
      return kind === "pipe"
        ? { ...special, kind }
        : { ...special, kind, major: entry.major, minor: entry.minor };
    }
  }
}

/** Returns the fields of the extension `entry-attributes`. */
export function attributesOf(entry: StagedEntry): Pick<InstanceFile, "mtime" | "attributes" | "replaces"> {
  const mtime = wireTime(entry);
  const { attributes, replaces } = entry;
  return {
    ...(mtime !== undefined && { mtime }),
    ...(attributes && { attributes }),
    ...(replaces && { replaces }),
  };
}

/** The features of a service in this process. */
export const allFeatures: FileFeatures = { times: true, links: true, attributes: true };

/** Asks the service only if there are files. */
export async function featuresFor(
  { size }: Staged,
  supports: Pick<ServiceSupport, "fileFeatures">,
): Promise<FileFeatures> {
  return size > 0 ? await supports.fileFeatures() : { times: false, links: false, attributes: false };
}

/** Yields the files to upload one by one: for a large context, a list of all takes noticeable memory. */
export function* localFiles(
  entries: Iterable<StagedEntry>,
  contents?: SmallContents,
): Generator<LocalFile, undefined> {
  for (const entry of entries) {
    if (entry.type !== "file" || entry.content.kind !== "local") continue;
    const { sha256, size } = entry;
    const content = contents?.take(sha256);
    yield { absolutePath: entry.content.absolutePath, sha256, size, content };
  }
}

export function instanceFiles(
  staged: Staged,
  ids: ReadonlyMap<string, string>,
  { times, links, attributes }: FileFeatures,
): Record<string, InstanceFile> {
  const files: Record<string, InstanceFile> = {};
  /** Files have few different modes: one string for each. */
  const octals = new Map<number, string>();
  const furtherPaths = links ? findFurtherPaths(staged) : () => [];
  for (const [path, entry] of staged) {
    if (entry.type !== "file") continue;
    const further = furtherPaths(path, entry);
    if (further === undefined) continue;
    const uuid = ids.get(entry.sha256);
    if (uuid === undefined) throw new Error(`no file id for ${path}`);
    const mode = octals.getOrInsertComputed(entry.mode, () => octalMode(entry.mode));
    files[path] = { uuid, uid: entry.uid, gid: entry.gid, mode };
    const mtime = times ? wireTime(entry) : undefined;
    if (mtime !== undefined) files[path].mtime = mtime;
    if (attributes) Object.assign(files[path], attributesOf(entry));
    if (further.length > 0) files[path].links = further;
  }
  return files;
}

type StagedOther = Exclude<StagedEntry, StagedFile>;

/**
 * Returns all entries except files and directories that the service makes itself, as parents of other entries. `withTimes`: those
 * that only need a time are among them.
 */
export function entriesToMake(
  staged: Staged,
  { withTimes }: { withTimes: boolean },
): [string, StagedOther][] {
  const parents = new Set<string>();
  const others: [string, StagedOther][] = [];
  let last: string | undefined;
  staged.forEach((entry, path) => {
    if (entry.type !== "file") others.push([path, entry]);
    const end = path.lastIndexOf("/");
    // Makes a string for each directory, not for each file of a large context.
    if (last !== undefined && end === last.length && path.startsWith(last)) return;
    last = path.slice(0, end);
    parents.add(last === "" ? "/" : last);
  });
  return others.filter(
    ([path, entry]) =>
      entry.type !== "directory" ||
      entry.isExplicit ||
      !isRoot(entry) ||
      (withTimes && entry.mtime !== undefined) ||
      !parents.has(path),
  );
}
