import { BoughError } from "../../errors.ts";
import { isId, maxEntries, maxPathLength } from "../../image/archive-limits.ts";
import { directoryMode } from "../../image/file-mode.ts";
import type { TarEntry } from "../../image/tar-reader.ts";
import { PathResolution } from "../../paths/path-resolution.ts";
import type { SpecialKind } from "../../service/wire/file.ts";
import type { CopiedEntry } from "../../store/copies.ts";

/** The result of unpacking an archive's entries in an empty directory. No entry can lead out of it. */
interface ArchiveTree {
  /** `sha256`: the hash of a file's content. Replaces an earlier entry at the same path. */
  add(entry: TarEntry, sha256: string | undefined): void;
  /** Each entry comes after the directory that it is in. */
  entries(): CopiedEntry[];
}

/**
 * Creates the tree of an archive as Docker unpacks it, with the directory as the root: `..`, absolute names and links resolve
 * inside it and can't lead out. `archive` names the archive in messages; `hint` says what to do about a refused one.
 */
export function createArchiveTree(
  archive: string,
  hint = "Unpack it in a RUN, or copy it unchanged with --unpack=false.",
): ArchiveTree {
  const found = new Map<string, CopiedEntry>();
  /** Hard links have a number in common, by path. */
  const inodes = new Map<string, number>();
  let count = 0;
  const refuse = (how: string) => new BoughError(`${archive} ${how}`, { hint });

  /** Follows links in all parts but the last. */
  function resolve(name: string): string {
    if (name.length > maxPathLength) throw refuse(`contains a name of ${name.length} characters`);
    if (name.includes("\ufffd") || name.includes("\0"))
      throw refuse(`contains a name that is not UTF-8: ${JSON.stringify(name)}`);
    const tooManyLinks = () => refuse(`contains ${name}: too many levels of symbolic links`);
    const resolution = new PathResolution(name, { tooManyLinks });
    for (let part = resolution.next(); part !== undefined; part = resolution.next()) {
      const entry = resolution.isLast ? undefined : found.get([...resolution.reached, part].join("/"));
      if (entry?.type === "file") throw refuse(`contains ${name}, but ${entry.path} is not a directory`);
      if (entry?.type === "symlink") resolution.follow(entry.target);
      else resolution.enter(part);
    }
    return resolution.reached.join("/");
  }

  function makeParents(path: string): void {
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) {
      const above = path.slice(0, end);
      if (!found.has(above))
        found.set(above, {
          type: "directory",
          path: above,
          mode: directoryMode,
          uid: 0,
          gid: 0,
          isImplied: true,
        });
    }
  }

  function removeBelow(path: string): void {
    for (const other of found.keys()) if (other.startsWith(`${path}/`)) found.delete(other);
  }

  function originalOf(entry: TarEntry, path: string): CopiedEntry {
    const target = resolve(entry.target);
    const original = found.get(target);
    if (original === undefined || original.type === "directory")
      throw refuse(`contains ${entry.name} as a link to ${entry.target}, which is not a file in the archive`);
    const inode = inodes.getOrInsert(target, count);
    inodes.set(path, inode);
    return original;
  }

  /** Names the first of several hard links in the others. */
  function* withOriginals(): Generator<CopiedEntry, undefined> {
    const firsts = new Map<number, string>();
    for (const entry of found.values()) {
      const inode = entry.type === "file" ? inodes.get(entry.path) : undefined;
      const first = inode === undefined ? undefined : firsts.get(inode);
      if (inode !== undefined && first === undefined) firsts.set(inode, entry.path);
      yield entry.type === "file" && first !== undefined ? { ...entry, original: first } : entry;
    }
  }

  function toEntry(entry: TarEntry, path: string, sha256: string | undefined): CopiedEntry {
    if (entry.type === "hardlink") return { ...originalOf(entry, path), path };
    const made = entryAt(path, entry, sha256);
    if (made === undefined)
      throw refuse(`contains ${path}, whose type ${JSON.stringify(entry.flag)} is unknown`);
    return made;
  }

  return {
    add(entry, sha256) {
      count += 1;
      if (count > maxEntries) throw refuse(`has more than ${maxEntries} entries`);
      const path = resolve(entry.name);
      // The destination itself keeps its attributes.
      if (path === "") return;
      if (!isId(entry.uid) || !isId(entry.gid)) throw refuse(`has an invalid owner for ${path}`);
      const made = toEntry(entry, path, sha256);
      if (entry.type !== "hardlink") inodes.delete(path);
      makeParents(path);
      const before = found.get(path);
      if (before?.type === "directory" && made.type !== "directory") removeBelow(path);
      // A new entry of another type goes to the end of the list.
      if (before?.type !== made.type) found.delete(path);
      found.set(path, made);
    },
    entries: () => [...withOriginals()],
  };
}

/** Returns the entry of anything but a hard link; `undefined` if its type is unknown. */
function entryAt(path: string, entry: TarEntry, sha256: string | undefined): CopiedEntry | undefined {
  const { mode, uid, gid, size, modified } = entry;
  const common = { path, uid, gid, mtime: Math.max(0, modified), ...attributesOf(entry) };
  switch (entry.type) {
    case "directory":
      return { type: "directory", mode, ...common };
    case "symlink":
      return { type: "symlink", target: entry.target, ...common };
    case "hardlink":
      throw new Error("a hard link has the entry of its original");
    case "file":
      if (sha256 === undefined) throw new Error(`no hash for ${path}`);
      return { type: "file", mode, size, sha256, ...common };
    case "other": {
      const kind = specialKind(entry);
      return kind && { type: "special", mode, ...kind, ...common };
    }
  }
}

function specialKind({ flag, major, minor }: TarEntry): SpecialKind | undefined {
  switch (flag) {
    case "3":
      return { kind: "character-device", major, minor };
    case "4":
      return { kind: "block-device", major, minor };
    case "6":
      return { kind: "pipe" };
    default:
      return undefined;
  }
}

function attributesOf({ attributes }: TarEntry): Pick<CopiedEntry, "attributes"> {
  if (attributes.length === 0) return {};
  const values = attributes.map(({ name, value }): [string, string] => [name, value.toString("base64")]);
  return { attributes: Object.fromEntries(values) };
}
