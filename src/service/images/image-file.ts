/** Files of an image, read without starting anything. */

import { posix } from "node:path";
import { NotFoundError } from "../http/errors.ts";
import { asText, type JsonRecord } from "../http/json.ts";
import type { ImageCopy } from "../wire/instance.ts";

export type PathType = "file" | "directory" | "symlink" | "other";

/** An entry of a listed directory. `target` is that of a link. */
export interface ImageEntry {
  type: PathType;
  target?: string | undefined;
}

/** Looks into an image without starting anything. `"unsupported"` if this service has no such call. */
export interface ImageInspector {
  /** Follows links by the service's own rules; `undefined` if there is nothing at that path. */
  pathType(image: string, path: string): Promise<PathType | undefined | "unsupported">;

  /** Returns a directory's entries by name; `undefined` if the service does not list it. */
  listEntries(image: string, directory: string): Promise<ReadonlyMap<string, ImageEntry> | undefined>;

  /** `undefined` if there is no such file. */
  readFile(image: string, path: string): Promise<Uint8Array | undefined | "unsupported">;
}

export interface ImageFile {
  name: string;
  type: PathType;
  /** Permission bits, if the service reports them. */
  mode: number | null;
  uid: number;
  gid: number;
  size: number;
  /** Seconds since the epoch. */
  modified: number;
  /** The target of a link. */
  target: string | null;
}

export interface ImageFiles {
  /**
   * Returns the SHA-256 of all that `COPY --from` would take from an image's files, except times. Only with the extension
   * `copies`; rejects with NotFoundError if the image is gone, or has no such files.
   */
  digestFiles(image: string, files: Pick<ImageCopy, "sources" | "parents" | "exclude">): Promise<string>;

  /** Lists a directory; for anything else, returns its own entry. Rejects with NotFoundError. */
  listFiles(image: string, path: string): Promise<ImageFile[]>;
  /** Opens one regular file; `undefined` if the path leads to something else. */
  openFile(image: string, path: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** Opens a tar archive of a directory's contents. */
  openArchive(image: string, path: string): Promise<ReadableStream<Uint8Array>>;
}

export function lostImage(image: string): NotFoundError {
  return new NotFoundError(`image ${image} is gone`);
}

export function noSuchFile(image: string, path: string): NotFoundError {
  return new NotFoundError(`${path}: there is no such file in image ${image}`);
}

/** Returns the name of a file in a list of `GET /v1/inspect/{uuid}/list`. Some services list names, some whole paths. */
export function fileName({ path }: JsonRecord): string {
  return posix.basename(asText(path) ?? "");
}

export function fileType(file: JsonRecord): PathType {
  if (file.is_symlink === true) return "symlink";
  if (file.is_dir === true) return "directory";
  return file.is_regular === true ? "file" : "other";
}
