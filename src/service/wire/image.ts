import type { ImageConfig } from "../../image/config.ts";
import type { HistoryLine } from "../../image/history.ts";

export const maxTagLength = 256;

/** Tags of the service: `a-z 0-9 _ -` with `: / .` as separators. */
export function isTag(text: string): boolean {
  return text.length <= maxTagLength && /^[a-z0-9_-]+([:/.][a-z0-9_-]+)*$/.test(text);
}

/** One layer of an image. Part of the extension `layers`, which bough's own engine has. */
export interface ImageLayer {
  /** The name of this content for as long as the service has it, and never of another one. */
  id: string;
  created_at: string;
  /** False: bough has made it. */
  is_imported: boolean;
  /** Bytes on disk, of a layer that bough has made, where that was asked for. Part of the extension `layer-sizes`. */
  size?: number;
  /** The blob it was imported as: then its bytes come as they were, compressed or not. */
  blob?: { media_type: string; digest: string; size: number; diff_id: string };
}

export interface ImageRecord {
  uuid: string;
  tag: string | null;
  created_at: string;
  operation_uuid?: string | null;
  /** Bytes on disk of all its layers, where a list is asked for it (`sizes=1`). Part of the extension `image-sizes`. */
  size?: number;
  /**
   * The configuration, where the image was asked for by its UUID or tag. Part of the extension `config`, which bough's own engine
   * has. Not named `config`: older versions have another shape under that name.
   */
  oci_config?: ImageConfig;
  /** Author and history come beside the configuration. Part of the extension `history`. */
  oci_author?: string;
  oci_history?: readonly HistoryLine[];
  /**
   * Platform and configuration's digest, or the UUID of an image that nobody has imported. Part of the extension `identity`,
   * which bough's own engine has.
   */
  identity?: string;
}

export interface ImportRequest {
  registry: { url: string; credentials?: { username: string; password: string } };
  tag?: string;
  /** Seconds. */
  timeout?: number;
}
