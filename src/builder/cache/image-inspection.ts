import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { ExcessiveResponseError } from "../../service/http/errors.ts";
import type { ImageEntry, ImageInspector, PathType } from "../../service/images/image-file.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import type { ServiceSupport } from "../service-support.ts";

/** Looks at an image's files. The service is asked once about each path: an image never changes, so the results are stored. */
export interface ImageInspection {
  /** False if the service lacks `inspect`. */
  isDirectory(image: string, path: string): Promise<boolean>;
  /** True for anything but a directory, with links followed. False if the service lacks `inspect`. */
  isFile(image: string, path: string): Promise<boolean>;
  /** The type of the entry itself, links not followed; `undefined` if there is none or if the service lacks `inspect`. */
  typeAt(image: string, path: string): Promise<PathType | undefined>;
  /** The target of a link; `undefined` for anything else, and if the service lacks `inspect`. */
  readLink(image: string, path: string): Promise<string | undefined>;
  /** `undefined`: there is no such file. */
  readTextFile(image: string, path: string): Promise<string | undefined | "unsupported">;
}

/** The maximum number of paths of an image that are requested one by one. Beyond it, the directories above a path are listed. */
const maxSinglePaths = 16;

export function createImageInspection(
  inspector: ImageInspector,
  supports: Pick<ServiceSupport, "inspection">,
  store: Pick<ImageMetadataCache, "get" | "set">,
): ImageInspection {
  /** The number of requests by image. */
  const requests = new Map<string, number>();
  const lists = createLists(inspector);

  function recordType(image: string, path: string, type: PathType | undefined): boolean {
    requests.set(image, (requests.get(image) ?? 0) + 1);
    store.set(image, `directory ${path}`, type === "directory" ? "yes" : "no");
    return type === "directory";
  }

  async function probe(image: string, path: string): Promise<boolean> {
    const known = store.get(image, `directory ${path}`);
    if (known !== undefined) return known === "yes";
    const type = await inspector.pathType(image, path);
    return type !== "unsupported" && recordType(image, path, type);
  }

  async function isDirectoryListed(image: string, path: string): Promise<boolean | undefined> {
    const found = await lists.find(image, path);
    // Only the service can resolve a link.
    if (found === undefined || found.entry?.type === "symlink") return undefined;
    return recordType(image, path, found.entry?.type);
  }

  /** Walks from the root down, using lists; returns `undefined` if a directory can't be listed. */
  async function isListed(image: string, path: string): Promise<boolean | undefined> {
    let directory = "/";
    for (const name of path.split("/").filter((part) => part !== "")) {
      directory = posix.join(directory, name);
      const found = await lists.find(image, directory);
      if (found === undefined) return undefined;
      const { entry } = found;
      const isDirectory =
        entry?.type === "symlink" ? await probe(image, directory) : entry?.type === "directory";
      if (!isDirectory) return false;
    }
    return true;
  }

  return {
    async isDirectory(image, path) {
      if (!supports.inspection()) return false;
      const isFrequent = (requests.get(image) ?? 0) >= maxSinglePaths;
      const isNear = path !== "/" && lists.has(image, posix.dirname(path));
      const listed = isFrequent
        ? await isListed(image, path)
        : isNear
          ? await isDirectoryListed(image, path)
          : undefined;
      return listed ?? probe(image, path);
    },

    async isFile(image, path) {
      if (!supports.inspection()) return false;
      const key = `file ${path}`;
      const known = store.get(image, key);
      if (known !== undefined) return known === "yes";
      const type = await inspector.pathType(image, path);
      const isFile = type !== undefined && type !== "directory" && type !== "unsupported";
      if (type !== "unsupported") store.set(image, key, isFile ? "yes" : "no");
      return isFile;
    },

    async typeAt(image, path) {
      if (!supports.inspection() || path === "/") return undefined;
      return findOnce(store, image, `type ${path}`, async () => (await lists.find(image, path))?.entry?.type);
    },

    async readLink(image, path) {
      if (!supports.inspection() || path === "/") return undefined;
      return findOnce(store, image, `link ${path}`, async () => {
        const entry = (await lists.find(image, path))?.entry;
        return entry?.type === "symlink" ? entry.target : undefined;
      });
    },

    async readTextFile(image, path) {
      return findOnce(store, image, `text ${path}`, async () => {
        const content = await inspector.readFile(image, path).catch((error: unknown) => {
          if (!(error instanceof ExcessiveResponseError)) throw error;
          throw new BoughError(`${path} in the image is too large to look up names in it`, {
            hint: "Write numbers in place of names, such as 1000:1000.",
            cause: error,
          });
        });
        return content instanceof Uint8Array ? new TextDecoder().decode(content) : content;
      });
    },
  };
}

/** Lists of an image's directories, each asked for once. */
function createLists(inspector: Pick<ImageInspector, "listEntries">) {
  const lists = new Map<string, Promise<ReadonlyMap<string, ImageEntry> | undefined>>();
  const keyOf = (image: string, directory: string) => `${image} ${directory}`;
  const list = (image: string, directory: string) => {
    const key = keyOf(image, directory);
    return lists.getOrInsertComputed(key, () => {
      const listing = inspector.listEntries(image, directory);
      // An image whose layers could not be fetched may be there again.
      listing.catch(() => lists.delete(key));
      return listing;
    });
  };
  return {
    has: (image: string, directory: string) => lists.has(keyOf(image, directory)),
    /** Finds a path's entry in the list of its directory, links not followed; `undefined` if that can't be listed. */
    async find(image: string, path: string): Promise<{ entry?: ImageEntry } | undefined> {
      const entries = await list(image, posix.dirname(path));
      const entry = entries?.get(posix.basename(path));
      return entries && (entry === undefined ? {} : { entry });
    },
  };
}

/** Returns the value stored under a key, or else that of `find`, which is stored unless it is "unsupported". */
async function findOnce<Value extends string>(
  store: Pick<ImageMetadataCache, "get" | "set">,
  image: string,
  key: string,
  find: () => Promise<Value | undefined>,
): Promise<Value | undefined> {
  const known = store.get(image, key);
  if (known !== undefined) return JSON.parse(known) ?? undefined;
  const found = await find();
  if (found !== "unsupported") store.set(image, key, JSON.stringify(found ?? null));
  return found;
}
