import { posix } from "node:path";
import type { ImageInspector, PathType } from "../../service/service.ts";
import type { FactStore } from "../../store/facts.ts";

/** What an image holds, asked of the service at most once: an image never changes, so answers are kept for good. */
export interface ImageFacts {
  /** Of a service that can't be asked: false. */
  isDirectory(image: string, path: string): Promise<boolean>;
  /** Whether the service has told nothing when it was asked what a path is. */
  readonly isGuessing: boolean;
  /** `undefined`: there is no such file. */
  readTextFile(image: string, path: string): Promise<string | undefined | "unknowable">;
}

/** So many questions of one image are asked one by one; for more, the directories on the way are listed once each. */
const maxAsked = 16;

export function createImageFacts(
  inspector: ImageInspector,
  store: Pick<FactStore, "get" | "set">,
): ImageFacts {
  // A service that can't be asked once can't be asked at all.
  let unknowable = false;
  /** By image. */
  const asked = new Map<string, number>();
  /** By image and directory. */
  const lists = new Map<string, Promise<ReadonlyMap<string, PathType> | undefined>>();

  async function ask(image: string, path: string): Promise<boolean> {
    const key = `directory ${path}`;
    const known = store.get(image, key);
    if (known !== undefined) return known === "yes";
    asked.set(image, (asked.get(image) ?? 0) + 1);
    const type = await inspector.pathType(image, path);
    if (type === "unknowable") unknowable = true;
    else store.set(image, key, type === "directory" ? "yes" : "no");
    return type === "directory";
  }

  function list(image: string, directory: string): Promise<ReadonlyMap<string, PathType> | undefined> {
    const key = `${image} ${directory}`;
    const begun = lists.get(key) ?? inspector.listTypes(image, directory);
    lists.set(key, begun);
    return begun;
  }

  /** From the root down, by lists; `undefined` where one is missing. */
  async function isListed(image: string, path: string): Promise<boolean | undefined> {
    let directory = "/";
    for (const name of path.split("/").filter((part) => part !== "")) {
      const types = await list(image, directory);
      if (types === undefined) return undefined;
      directory = posix.join(directory, name);
      const type = types.get(name);
      // Where a link leads is for the service to say.
      const isDirectory = type === "symlink" ? await ask(image, directory) : type === "directory";
      if (!isDirectory) return false;
    }
    return true;
  }

  return {
    get isGuessing() {
      return unknowable;
    },

    async isDirectory(image, path) {
      if (unknowable) return false;
      const listed = (asked.get(image) ?? 0) < maxAsked ? undefined : await isListed(image, path);
      return listed ?? ask(image, path);
    },

    async readTextFile(image, path) {
      const key = `text ${path}`;
      const known = store.get(image, key);
      if (known !== undefined) return JSON.parse(known) ?? undefined;
      const content = await inspector.readFile(image, path);
      if (content === "unknowable") return content;
      const text = content === undefined ? undefined : new TextDecoder().decode(content);
      store.set(image, key, JSON.stringify(text ?? null));
      return text;
    },
  };
}
