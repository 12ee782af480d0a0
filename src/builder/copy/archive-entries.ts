import { BoughError } from "../../errors.ts";
import { isId, maxEntries, maxPathLength } from "../../image/archive-limits.ts";
import type { TarEntry } from "../../image/tar-reader.ts";

/** An entry of an image's archive whose name has been checked. */
export interface ArchivedEntry {
  /** Relative to the archive's directory; never empty. */
  path: string;
  entry: TarEntry;
  /** The path of the file that a hard link refers to, which came before it. */
  original: string | undefined;
}

const maxBytes = 2 ** 42;

/**
 * Checks the entries of a directory's archive, since the service is not trusted. Throws for names that lead elsewhere or through
 * a link, duplicate names, devices, and an endless archive. `archive` names it in the message.
 */
export async function* checkArchive(
  entries: AsyncIterable<TarEntry>,
  archive: string,
): AsyncGenerator<ArchivedEntry> {
  /** The type at each path so far. A directory may be known only by what is in it. */
  const seen = new Map<string, TarEntry["type"] | "implied">();
  const refuse = (how: string) =>
    new BoughError(`${archive} ${how}`, {
      hint: "The service must not send such an archive: nothing was copied from it.",
    });
  let count = 0;
  let bytes = 0;

  const relativePath = (name: string) => {
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    const isElsewhere = name.startsWith("/") || parts.includes("..") || name.includes("\0");
    if (isElsewhere) throw refuse(`contains a name that leads out of it: ${JSON.stringify(name)}`);
    if (name.length > maxPathLength) throw refuse(`contains a name of ${name.length} characters`);
    // The decoder's replacement for bytes that are not UTF-8.
    if (name.includes("\ufffd")) throw refuse(`contains a name that is not UTF-8: ${JSON.stringify(name)}`);
    return parts.join("/");
  };
  const enter = (path: string) => {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const above = path.slice(0, end);
      const type = seen.get(above);
      if (type === "directory" || type === "implied") return;
      if (type !== undefined) throw refuse(`contains ${path}, but ${above} is not a directory`);
      seen.set(above, "implied");
    }
  };

  for await (const entry of entries) {
    count += 1;
    bytes += entry.size;
    if (count > maxEntries || bytes > maxBytes)
      throw refuse(`has more than ${maxEntries} entries or ${maxBytes / 2 ** 40} TiB`);
    const path = relativePath(entry.name);
    if (path === "") {
      if (entry.type !== "directory") throw refuse(`contains a ${entry.type} without a name`);
      continue;
    }
    enter(path);
    const before = seen.get(path);
    if (before !== undefined && !(before === "implied" && entry.type === "directory"))
      throw refuse(`contains ${path} twice`);
    if (!isId(entry.uid) || !isId(entry.gid)) throw refuse(`has an invalid owner for ${path}`);
    if (entry.isDevice) throw refuse(`contains a device: ${path}`);
    const original = entry.type === "hardlink" ? relativePath(entry.target) : undefined;
    if (original !== undefined && seen.get(original) !== "file")
      throw refuse(`contains ${path} as a link to ${entry.target}, which is not a file in the archive`);
    seen.set(path, entry.type);
    yield { path, entry, original };
  }
}
