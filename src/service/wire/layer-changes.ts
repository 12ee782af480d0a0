import type { ImageLayer } from "./image.ts";

/** Files, directories not counted, and the bytes of their contents: of a file with several names once. */
export interface ChangedAmount {
  files: number;
  bytes: number;
}

/** What a layer does to those below it. Part of the extension `changes`, which bough's own engine has. */
export interface ImageLayerChanges extends Pick<ImageLayer, "id" | "created_at" | "is_imported"> {
  added: ChangedAmount;
  /** Bytes of what stands in place of the old. */
  changed: ChangedAmount;
  /** What is gone of the layers below. */
  deleted: ChangedAmount;
  /** What later layers have changed or deleted of this one. */
  hidden: ChangedAmount;
}

/** What a layer does to one path. */
export interface LayerChange {
  kind: "added" | "changed" | "deleted";
  /** Absolute. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Permission bits; of what is deleted, those that it had. */
  mode: number;
  /** Bytes in the layer. */
  size: number;
  /** What it takes out of sight of the layers below. */
  hidden: ChangedAmount;
}
