import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import type { ImageTree } from "../../image/copy-sources.ts";
import type { ImageFile } from "../../service/images/image-files.ts";
import type { ImageService } from "../../service/service.ts";

/** An image's tree, as a service lists it. Each directory is listed once. */
export interface ListedTree extends ImageTree {
  /** Returns the entry for a path in the list of its directory; `undefined` for the root, too. */
  describe(path: string): Promise<ImageFile | undefined>;
  /** Lists the directories on the way to a path at once, where looking it up would list one after the other. */
  prepare(path: string): void;
}

export function createListedTree(image: string, service: Pick<ImageService, "listFiles">): ListedTree {
  const lists = new Map<string, Promise<ReadonlyMap<string, ImageFile>>>();

  function list(directory: string): Promise<ReadonlyMap<string, ImageFile>> {
    const begun =
      lists.get(directory) ??
      service.listFiles(image, directory).then((files) => byName(files, directory, image));
    lists.set(directory, begun);
    return begun;
  }

  const describe = async (path: string) => (await list(posix.dirname(path))).get(posix.basename(path));
  return {
    describe,
    prepare(path) {
      const names = path.split("/").slice(1, -1);
      for (const count of [...names.keys(), names.length])
        list(`/${names.slice(0, count).join("/")}`).catch(() => {
          // Nothing is there if a link leads to the path. Whoever needs this list gets the error.
        });
    },
    async lookUp(path) {
      if (path === "/") return { type: "directory" };
      const file = await describe(path);
      if (file === undefined) return undefined;
      return file.type === "symlink" ? { type: "symlink", target: file.target ?? "" } : { type: file.type };
    },
    list: async (directory) => [...(await list(directory)).keys()],
  };
}

/** Checks names, since the service is not trusted: one that leads elsewhere or occurs twice would be copied to another place. */
function byName(
  files: readonly ImageFile[],
  directory: string,
  image: string,
): ReadonlyMap<string, ImageFile> {
  const named = new Map<string, ImageFile>();
  for (const file of files) {
    const { name } = file;
    if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
      throw hostile(`lists ${JSON.stringify(name)} in ${directory}`, image);
    if (named.has(name)) throw hostile(`lists ${JSON.stringify(name)} twice in ${directory}`, image);
    named.set(name, file);
  }
  return named;
}

function hostile(how: string, image: string): BoughError {
  return new BoughError(`the service ${how} of image ${image}`, { hint: "Nothing is copied from it." });
}
