import type { ImageLayer } from "./image.ts";

/** Files, not counting directories, and the bytes of their contents, counted once for a file with several names. */
export interface ChangedAmount {
  files: number;
  bytes: number;
}

/** A layer's changes to those below it. Part of the extension `changes`, which bough's own engine has. */
export interface ImageLayerChanges extends Pick<ImageLayer, "id" | "created_at" | "is_imported"> {
  added: ChangedAmount;
  /** Bytes of the new contents. */
  changed: ChangedAmount;
  /** Files of the layers below that it deletes. */
  deleted: ChangedAmount;
  /** Files of this layer that later layers change or delete. */
  hidden: ChangedAmount;
}

/** A layer's change to one path. */
export interface LayerChange {
  kind: "added" | "changed" | "deleted";
  /** Absolute. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Permission bits; of a deleted path, its former ones. */
  mode: number;
  /** Bytes in the layer. */
  size: number;
  /** Files of the layers below that it hides. */
  hidden: ChangedAmount;
}
