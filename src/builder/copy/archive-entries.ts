import { BoughError } from "../../errors.ts";
import type { TarEntry } from "../../image/tar-reader.ts";

/** An entry of an image's archive whose name has been checked. */
export interface ArchivedEntry {
  /** Relative to the archive's directory; never empty. */
  path: string;
  entry: TarEntry;
  /** The path of the file that a hard link refers to, which came before it. */
  original: string | undefined;
}

/** No image holds more entries. An endless archive would be read forever. */
const maxEntries = 2_000_000;
const maxBytes = 2 ** 42;
const maxPathLength = 4096;

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
      hint: "The service is not trusted with that: nothing of it is copied.",
    });
  let count = 0;
  let bytes = 0;

  const relativePath = (name: string) => {
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    const isElsewhere = name.startsWith("/") || parts.includes("..") || name.includes("\0");
    if (isElsewhere) throw refuse(`has a name in it that leads elsewhere: ${JSON.stringify(name)}`);
    if (name.length > maxPathLength) throw refuse(`has a name of ${name.length} characters in it`);
    // The decoder's replacement for bytes that are not UTF-8.
    if (name.includes("\ufffd")) throw refuse(`has a name in it that is not UTF-8: ${JSON.stringify(name)}`);
    return parts.join("/");
  };
  const enter = (path: string) => {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const above = path.slice(0, end);
      const type = seen.get(above);
      if (type === "directory" || type === "implied") return;
      if (type !== undefined) throw refuse(`has ${path} in it, and ${above} is not a directory`);
      seen.set(above, "implied");
    }
  };

  for await (const entry of entries) {
    count += 1;
    bytes += entry.size;
    if (count > maxEntries || bytes > maxBytes) throw refuse("has no end");
    const path = relativePath(entry.name);
    if (path === "") {
      if (entry.type !== "directory") throw refuse(`has a ${entry.type} in it without a name`);
      continue;
    }
    enter(path);
    const before = seen.get(path);
    if (before !== undefined && !(before === "implied" && entry.type === "directory"))
      throw refuse(`has ${path} in it twice`);
    if (!isId(entry.uid) || !isId(entry.gid)) throw refuse(`gives ${path} an owner that is not a number`);
    if (entry.isDevice) throw refuse(`has a device in it: ${path}`);
    const original = entry.type === "hardlink" ? relativePath(entry.target) : undefined;
    if (original !== undefined && seen.get(original) !== "file")
      throw refuse(`has ${path} in it as a link to ${entry.target}, which is not a file in it`);
    seen.set(path, entry.type);
    yield { path, entry, original };
  }
}

function isId(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32;
}
