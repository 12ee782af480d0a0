import { readlinkSync } from "node:fs";
import { isDate } from "../../clock.ts";
import type { Service } from "../../service/client.ts";
import { maxFileBytes } from "../../service/http/bounded-body.ts";
import { ExcessiveResponseError } from "../../service/http/errors.ts";
import {
  fileType,
  type ImageEntry,
  type ImageFile,
  lostImage,
  noSuchFile,
} from "../../service/images/image-file.ts";
import { readSelectionBody } from "../copies/copy-spec.ts";
import { RequestError } from "../http/responses.ts";
import { describeEntries, entriesAt, type FileItem, type NamedEntry } from "../inspect/entries.ts";
import { streamFile } from "../inspect/file-stream.ts";
import { findInImage, findInView, viewImage } from "../inspect/image-path.ts";
import type { Image } from "../records/images.ts";
import type { EngineState } from "../state.ts";
import { type Calls, interruptible } from "./calls.ts";
import { ensureImage } from "./images.ts";

type ImageFiles = Pick<
  Service,
  | "pathType"
  | "listEntries"
  | "readFile"
  | "listFiles"
  | "digestFiles"
  | "openFile"
  | "openTree"
  | "openArchive"
>;

/** Files of images, read without starting anything. */
export function createImageFiles(state: EngineState, { read }: Calls, signal: AbortSignal): ImageFiles {
  /** Rejects with the error of an image that is gone. */
  const ensure = (image: string, options?: { forLookup: boolean }) =>
    ensureImage(state, image, signal, options).catch(unlessMissing(() => lostImage(image)));

  async function find(
    image: Promise<Image>,
    path: string,
  ): Promise<ReturnType<typeof findInImage> | undefined> {
    const ensured = await image;
    try {
      return findInImage(state, ensured, path);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  return {
    pathType: (image, path) =>
      read(async () => {
        const stats = (await find(ensure(image, { forLookup: true }), path))?.found.stats;
        if (stats === undefined) return undefined;
        return stats.isDirectory() ? "directory" : stats.isFile() ? "file" : "other";
      }),

    listEntries: (image, directory) =>
      read(async () => {
        const place = await find(ensure(image, { forLookup: true }), directory);
        if (place === undefined) return undefined;
        const { view, found } = place;
        const entries = entriesAt(view, found);
        return new Map(entries.map((entry): [string, ImageEntry] => [entry.name.toString(), toEntry(entry)]));
      }),

    readFile: (image, path) =>
      read(async () => {
        const file = (await find(ensure(image), path))?.found;
        if (!file?.stats.isFile()) return undefined;
        if (file.stats.size > maxFileBytes)
          throw new ExcessiveResponseError(
            `${path} in image ${image} is larger than ${maxFileBytes / 2 ** 20} MiB`,
          );
        return await Bun.file(file.path).bytes();
      }),

    listFiles: (image, path) =>
      read(async () => {
        const place = await find(ensure(image), path);
        if (place === undefined) throw noSuchFile(image, path);
        return describeEntries(place.view, place.found).map(toFile);
      }),

    digestFiles: (image, files) =>
      read(async () => {
        const selection = readSelectionBody({ ...files });
        const { digestOfImage } = await import("../copies/digest.ts");
        return digestOfImage(state, await ensure(image), selection, signal).catch(
          unlessMissing(() => noSuchFile(image, files.sources.join(" "))),
        );
      }),

    openFile: (image, path) =>
      read(async () => {
        const place = await find(ensure(image), path);
        if (place === undefined) throw noSuchFile(image, path);
        return place.found.stats.isFile() ? interruptible(streamFile(place.found.path), signal) : undefined;
      }),

    openTree: (image, path) =>
      read(async () => {
        const { openImageTree } = await import("../inspect/tree-entries.ts");
        return openImageTree(state, image, path, signal);
      }),

    openArchive: (image, path) =>
      read(async () => {
        const { streamArchive } = await import("../inspect/archive.ts");
        return openArchive(await ensure(image), path, streamArchive);
      }),
  };

  async function openArchive(
    image: Image,
    path: string,
    stream: typeof import("../inspect/archive.ts").streamArchive,
  ): Promise<ReadableStream<Uint8Array>> {
    using owned = new DisposableStack();
    const view = owned.use(await viewImage(state, image));
    try {
      const { path: place, stats } = findInView(view, path);
      const archive = stream(state, place, stats, view);
      owned.move();
      return interruptible(archive, signal);
    } catch (error) {
      throw isMissing(error) ? noSuchFile(image.uuid, path) : error;
    }
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof RequestError && error.status === 404;
}

/** Returns a handler that throws another error in place of that of something missing. */
function unlessMissing(other: () => Error): (error: unknown) => never {
  return (error) => {
    throw isMissing(error) ? other() : error;
  };
}

function toEntry({ type, path }: NamedEntry): ImageEntry {
  return type === "symlink" ? { type, target: readlinkSync(path, "utf8") } : { type };
}

function toFile(item: FileItem): ImageFile {
  const { path: name, mode, uid, gid, size, mtime: modified } = item;
  return {
    ...{ name, uid, gid, size },
    type: fileType({ ...item }),
    mode: mode & 0o7777,
    modified: isDate(modified) ? modified : 0,
    target: item.symlink_to || null,
  };
}
