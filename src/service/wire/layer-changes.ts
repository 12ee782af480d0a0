import type { ImageLayer } from "./image.ts";

/** Files, not counting directories, and the bytes of their contents, counted once for a file with several names. */
export interface ChangedAmount {
  files: number;
  bytes: number;
}

/** What a layer changes in those below it. Part of the extension `changes`, which bough's own engine has. */
export interface ImageLayerChanges extends Pick<ImageLayer, "id" | "created_at" | "is_imported"> {
  added: ChangedAmount;
  /** Bytes of the new contents. */
  changed: ChangedAmount;
  /** What it deletes of the layers below. */
  deleted: ChangedAmount;
  /** What later layers change or delete of it. */
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
  /** What it hides of the layers below. */
  hidden: ChangedAmount;
}
