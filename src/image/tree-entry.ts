import type { TarEntry } from "./tar-reader.ts";

/** An entry of a tree, from an archive or from the directories of an image's layers. */
export interface TreeEntry extends Omit<TarEntry, "isDevice" | "start" | "offset" | "isSparse"> {
  /** The path on this machine of a large file without holes, for a copy that need not pass through this process. */
  hostPath?: string | Buffer | undefined;
}
