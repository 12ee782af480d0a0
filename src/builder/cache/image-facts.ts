import type { ImageInspector } from "../../service/service.ts";
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

export function createImageFacts(inspector: ImageInspector, store: FactStore): ImageFacts {
  // A service that can't be asked once can't be asked at all.
  let unknowable = false;
  return {
    get isGuessing() {
      return unknowable;
    },

    async isDirectory(image, path) {
      if (unknowable) return false;
      const key = `directory ${path}`;
      const known = store.get(image, key);
      if (known !== undefined) return known === "yes";
      const type = await inspector.pathType(image, path);
      if (type === "unknowable") unknowable = true;
      else store.set(image, key, type === "directory" ? "yes" : "no");
      return type === "directory";
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
