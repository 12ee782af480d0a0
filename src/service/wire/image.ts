import type { ImageConfig } from "../../image/config.ts";
import type { HistoryLine, ImageOrigin } from "../../image/history.ts";
import type { LayerTable } from "../../image/layer-table.ts";

const maxTagLength = 256;

/** A tag that every service takes: `a-z 0-9 _ -` with `: / .` as separators. */
export function isServiceTag(text: string): boolean {
  return text.length <= maxTagLength && /^[a-z0-9_-]+([:/.][a-z0-9_-]+)*$/.test(text);
}

/** A tag that every service takes, or one of Docker's, such as `app:1.0-SNAPSHOT`, which some services take as well. */
export function isTag(text: string): boolean {
  return isServiceTag(text) || isDockerName(text);
}

/** One layer of an image. Part of the extension `layers`, which bough's own engine has. */
export interface ImageLayer {
  /** Names this content as long as the service has it, and never other content. */
  id: string;
  created_at: string;
  /** False if bough has made it. */
  is_imported: boolean;
  /** Bytes of the files of a layer that bough has made, if asked for. Part of the extension `layer-sizes`. */
  size?: number;
  /** The blob it was imported as: then its bytes are returned unchanged, compressed or not. */
  blob?: { media_type: string; digest: string; size: number; diff_id: string };
  /** True for a layer that is fetched from its `source` when its files are needed. Part of the extension `remote-layers`. */
  is_remote?: boolean;
  /** The store that has the blob: `docker://HOST/NAME` or `dir:/PATH`. */
  source?: string;
}

/** An image whose layers are fetched when they are needed. Part of the extension `remote-layers`, which bough's own engine has. */
export interface RemoteImageRequest {
  /** The store of the layers: `docker://HOST/NAME`, or `dir:/PATH` for a client in the same process. */
  source: string;
  /** The image's configuration, in OCI's format; its digest becomes part of the image's identity. */
  configuration?: string;
  /** Instead of `configuration`. */
  config?: ImageConfig;
  origin?: ImageOrigin;
  /** `linux/amd64`; by default the service's own. */
  platform?: string;
  /** Instead of `configuration`, from a client in the same process: the digest that this configuration has elsewhere. */
  config_digest?: string;
  /** The lowest first. */
  layers: readonly RemoteLayer[];
  tag?: string;
}

type RemoteLayer = NonNullable<ImageLayer["blob"]> & {
  created_at?: string;
  /** From a client in the same process: where the blob has its table of contents, by which files are placed without the others. */
  table?: LayerTable | undefined;
};

/** The response: `missing` is the number of layers that are not here. */
export interface DeclaredImage {
  image: string;
  missing: number;
}

export interface ImageRecord {
  uuid: string;
  tag: string | null;
  created_at: string;
  operation_uuid?: string | null;
  /** Bytes of the files of all its layers, if a list asks for them (`sizes=1`). Part of the extension `image-sizes`. */
  size?: number;
  /** The same of the layers that no other image with a tag has. */
  own_size?: number;
  /** Layers that are not here yet, if there are any and sizes are asked for, and the bytes to fetch. Part of `remote-layers`. */
  missing_layers?: number;
  missing_bytes?: number;
  /**
   * The configuration, if the image was asked for by its UUID or tag. Part of the extension `config`, which bough's own engine
   * has. Not named `config`: older versions have another shape under that name.
   */
  oci_config?: ImageConfig;
  /** Author and history come with the configuration. Part of the extension `history`. */
  oci_author?: string;
  oci_history?: readonly HistoryLine[];
  /**
   * Platform and digest of the configuration, or the UUID of an image that was not imported. Part of the extension `identity`,
   * which bough's own engine has.
   */
  identity?: string;
  /** `linux/arm64`. Part of the extension `platforms`. */
  platform?: string;
}

export interface ImportRequest {
  registry: { url: string; credentials?: { username: string; password: string } };
  tag?: string;
  /** Seconds. */
  timeout?: number;
  /** The platform to choose; by default the service's own. Part of the extension `platforms`. */
  platform?: string;
}

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

// Docker's grammar of image names: https://pkg.go.dev/github.com/distribution/reference
const maxRepositoryLength = 255;
const component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const hostLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const hostPattern = new RegExp(`^${hostLabel}(?:\\.${hostLabel})*(?::\\d+)?$`);
const repositoryPattern = new RegExp(`^${component}(?:/${component})*$`);
const tagPattern = /^\w[\w.-]{0,127}$/;

export function isRegistryHost(text: string): boolean {
  return hostPattern.test(text);
}

/** A repository without a registry host, such as `team/app`. */
export function isRepositoryName(text: string): boolean {
  return text.length <= maxRepositoryLength && repositoryPattern.test(text);
}

/** The part after the colon. Only it may have capital letters. */
export function isTagName(text: string): boolean {
  return tagPattern.test(text);
}

/** `[HOST[:PORT]/]REPOSITORY:TAG` */
export function isDockerName(text: string): boolean {
  const colon = text.lastIndexOf(":");
  const name = text.slice(0, Math.max(colon, 0));
  const { host, repository } = splitHost(name);
  return (
    name.length <= maxRepositoryLength &&
    (host === undefined || isRegistryHost(host)) &&
    isRepositoryName(repository) &&
    isTagName(text.slice(colon + 1))
  );
}

/** A first segment with a dot or a colon, or `localhost`, is a registry host. */
export function splitHost(name: string): { host: string | undefined; repository: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  const hasHost = /[.:]/.test(first) || first === "localhost";
  return hasHost ? { host: first, repository: name.slice(slash + 1) } : { host: undefined, repository: name };
}
