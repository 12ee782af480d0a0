import { BoughError } from "../../errors.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import type { TreeEntry } from "../../image/tree-entry.ts";
import type { Service } from "../../service/client.ts";

/** The part of a service that lists and reads files of images. */
export type TreeService = Pick<Service, "openTree" | "openArchive" | "listFiles">;

/** Returns what is below a directory of an image. The engine in this process has the files themselves; other services send an archive. */
export async function openEntries(
  service: TreeService,
  image: string,
  path: string,
): Promise<AsyncIterable<TreeEntry>> {
  const tree = await service.openTree(image, path);
  if (tree !== undefined) return tree;
  const archive = await service.openArchive(image, path);
  return relativeEntries(readTar(archive), path, () => service.listFiles(image, path));
}

/**
 * Makes the names in a directory's archive relative to the directory. Most services write them so (`./file`), others with the
 * directory's own name (`etc/file`, as `docker cp` does) or with its whole path. `list` lists the directory: it is needed only if an
 * archive begins with an entry of the directory's name.
 */
export async function* relativeEntries(
  entries: AsyncIterable<TarEntry>,
  directory: string,
  list: () => Promise<readonly { name: string }[]>,
): AsyncGenerator<TarEntry> {
  let root: string | undefined;
  for await (const entry of entries) {
    root ??= await rootOf(entry, directory, list);
    if (root === "") yield entry;
    else {
      const target = entry.type === "hardlink" ? below(root, entry.target, directory) : entry.target;
      yield { ...entry, name: below(root, entry.name, directory), target };
    }
  }
}

/** Returns the name that the archive's names begin with, by its first entry. */
async function rootOf(
  { name, type }: TarEntry,
  directory: string,
  list: () => Promise<readonly { name: string }[]>,
): Promise<string> {
  const path = normalized(directory);
  const first = normalized(name);
  if (type !== "directory" || first === "") return "";
  if (first === path && path.includes("/")) return path;
  // Without an entry for the directory itself, this may be a directory of the same name in it.
  if (first !== path.slice(path.lastIndexOf("/") + 1)) return "";
  return (await list()).some((child) => child.name === first) ? "" : first;
}

function below(root: string, name: string, directory: string): string {
  const path = normalized(name);
  if (path === root) return "";
  if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  throw new BoughError(
    `the archive of ${directory} begins with ${root}, but contains ${JSON.stringify(name)}`,
  );
}

function normalized(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/");
}
