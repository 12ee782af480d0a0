/** The API client: an ImageService over any fetch function. */
import type { Clock } from "../clock.ts";
import { withoutCredentials } from "./address.ts";
import { createFiles, type KnownFiles } from "./files.ts";
import { createImages, type Images } from "./images.ts";
import { createInspector } from "./inspect.ts";
import { createOperations } from "./operations.ts";
import type { Fetch, ImageInspector, ImageService } from "./service.ts";
import { createTransport, type ServiceNotice } from "./transport.ts";
import { uploadStream } from "./upload-stream.ts";

export interface ServiceOptions {
  /** Remote: the global fetch. Embedded: the engine's handler. */
  fetch: Fetch;
  /** May carry a path prefix. */
  baseUrl: string;
  /** Shown to people instead of the base address. */
  address?: string;
  token?: string;
  project?: string;
  userAgent: string;
  clock: Clock;
  /** Ends everything but `cancel`. */
  signal: AbortSignal;
  onNotice?: (notice: ServiceNotice) => void;
  knownFiles?: KnownFiles;
  /** In [0, 1); spreads the waits before repeats. */
  random?: () => number;
}

export interface Service extends ImageService, ImageInspector, Pick<Images, "listImages"> {}

/** Rejects a base address or a token that cannot be used with a BoughError of kind `usage`. */
export function createService(options: ServiceOptions): Service {
  const { clock, signal, knownFiles } = options;
  const onNotice = options.onNotice ?? (() => undefined);
  const transport = createTransport({ ...options, onNotice, random: options.random ?? Math.random });
  const operations = createOperations({ transport, clock, signal, onNotice });
  const images = createImages({ transport, operations });
  const files = createFiles({ transport, signal, ...(knownFiles === undefined ? {} : { knownFiles }) });
  return {
    address: options.address ?? withoutCredentials(options.baseUrl).replace(/\/+$/, ""),
    findImage: images.findImage,
    listImages: images.listImages,
    importImage: images.importImage,
    tagImage: images.tagImage,
    uploadFiles: files.uploadFiles,
    uploadStream: (body) => uploadStream({ transport, clock, signal }, body),
    spawn: operations.spawn,
    follow: operations.follow,
    cancel: operations.cancel,
    ...createInspector(transport),
  };
}
