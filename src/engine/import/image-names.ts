/** Reads the names of the images in an archive or a layout, which `docker load` sets as their tags. */
import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { decompress } from "../../image/compression.ts";
import { containerdNameAnnotation, nameAnnotation } from "../../image/oci-layout.ts";
import { readTar, type TarEntry } from "../../image/tar-reader.ts";
import { defaultImportLimits, maxArchiveEntries, maxImageJsonBytes } from "../import-limits.ts";
import { compressionOf, openWhole, readWholeFile } from "./archive-files.ts";
import {
  asObject,
  asObjects,
  asTexts,
  type JsonObject,
  openDirectoryFiles,
  optionalText,
  parseJsonBytes,
  readManifestFile,
} from "./image-files.ts";

/** An image of an archive or a layout. */
interface NamedImage {
  /** The reference that selects the image, after the path and a colon; `undefined` if it is the only one. */
  reference: string | undefined;
  names: string[];
}

/** The formats that have names of images. */
export type NamingKind = "docker-archive" | "oci-archive" | "oci";

/** Returns the images with their names. Writes nothing, and reads an archive only as far as its list of images. */
export async function readImageNames(
  kind: NamingKind,
  path: string,
  signal: AbortSignal,
): Promise<NamedImage[]> {
  const list = kind === "docker-archive" ? "manifest.json" : "index.json";
  const bytes = kind === "oci" ? await fileOf(path, list) : await memberOf(path, list, signal);
  if (bytes === undefined) return [];
  const parsed = parseJsonBytes(bytes, path);
  const images = kind === "docker-archive" ? savedNames(parsed, path) : layoutNames(parsed, path);
  return images.length === 1 ? images.map((image) => ({ ...image, reference: undefined })) : images;
}

/** Returns the `RepoTags` of an archive of `docker save`. */
function savedNames(list: unknown, path: string): NamedImage[] {
  return asObjects(list, path).map(({ RepoTags }, at) => ({
    reference: `@${at}`,
    names: asTexts(RepoTags, path),
  }));
}

/** Returns the images that an index names. Several entries may name one image; entries of attestations name none. */
function layoutNames(index: unknown, path: string): NamedImage[] {
  const images = new Map<unknown, NamedImage>();
  asObjects(asObject(index, path).manifests, path).forEach((entry, at) => {
    const name = nameOf(entry);
    const known = images.get(entry.digest);
    if (known === undefined) images.set(entry.digest, { reference: `@${at}`, names: name ? [name] : [] });
    else if (name !== undefined) known.names.push(name);
  });
  const all = [...images.values()];
  return all.some(({ names }) => names.length > 0) ? all.filter(({ names }) => names.length > 0) : [];
}

/** Returns an entry's name. containerd's annotation has a whole name; OCI's may only have a tag. */
function nameOf({ annotations }: JsonObject): string | undefined {
  const { [containerdNameAnnotation]: whole, [nameAnnotation]: name } = (annotations ?? {}) as JsonObject;
  const given = optionalText(name);
  const text = optionalText(whole) ?? (given !== undefined && /[:/]/.test(given) ? given : undefined);
  return text && completeName(text);
}

/** Normalizes a name: `docker.io/library/alpine` and `alpine:latest` are the same. */
export function completeName(name: string): string {
  const familiar = name.replace(/^(index\.)?docker\.io\/(library\/)?/, "");
  return /:[^/]*$/.test(familiar) ? familiar : `${familiar}:latest`;
}

async function fileOf(directory: string, name: string): Promise<Uint8Array | undefined> {
  const file = openDirectoryFiles(directory).find(name);
  return file && readManifestFile(file);
}

async function memberOf(path: string, name: string, signal: AbortSignal): Promise<Uint8Array | undefined> {
  const compression = await compressionOf(path);
  const content =
    compression === "none"
      ? openWhole(path)
      : limitSize(decompress(readWholeFile(path), compression, path), path);
  let entries = 0;
  for await (const entry of readTar(content, path)) {
    signal.throwIfAborted();
    if (++entries > maxArchiveEntries) break;
    if (posix.normalize(entry.name) === name && entry.type === "file") return contentOf(entry, path);
  }
  return undefined;
}

async function contentOf({ size, pieces }: TarEntry, path: string): Promise<Uint8Array> {
  if (size > maxImageJsonBytes)
    throw new BoughError(`the list of images in ${path} is too large: ${size} bytes`);
  const parts: Uint8Array[] = [];
  for await (const { bytes } of pieces()) parts.push(bytes.slice());
  return Buffer.concat(parts);
}

async function* limitSize(content: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.byteLength;
    if (bytes > defaultImportLimits.bytes) throw new BoughError(`${path} is too large for an image`);
    yield chunk;
  }
}
