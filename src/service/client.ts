/** The API client: an ImageService over any fetch function. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { type Accounts, createAccounts, createCapabilities } from "./capabilities.ts";
import { createFiles } from "./files/files.ts";
import type { KnownFiles } from "./files/upload.ts";
import { parseBaseUrl, withoutCredentials } from "./http/address.ts";
import type { ServiceNotice } from "./http/attempt.ts";
import type { KnownProtocol } from "./http/protocol.ts";
import { createTransport, type Transport } from "./http/transport.ts";
import type { ImageInspector } from "./images/image-file.ts";
import { createImageFiles } from "./images/image-files.ts";
import type { SeenImages } from "./images/image-list.ts";
import { createImages, type Images } from "./images/images.ts";
import { createInspector, createInspectRoutes } from "./images/inspect-routes.ts";
import {
  createImageChanges,
  createImageLayers,
  type ImageChanges,
  type ImageLayers,
} from "./images/layers.ts";
import { createEventSnapshots, type EventSnapshots } from "./operations/events.ts";
import { createOperationRecords, type OperationRecords } from "./operations/operation-records.ts";
import { createOperations } from "./operations/operations.ts";
import { createTerminals, type Terminals } from "./operations/terminals.ts";
import type { Fetch, ImageService, ServedTime } from "./service.ts";

export interface ServiceOptions {
  fetch: Fetch;
  /** The service's address, which may have a path prefix. */
  baseUrl: string;
  token?: Secret;
  project?: string;
  userAgent: string;
  clock: Clock;
  /** Aborts everything but `cancel`. */
  signal: AbortSignal;
  onNotice?: (notice: ServiceNotice) => void;
  /** Called at the end of each operation. */
  onServed?: (time: ServedTime) => void;
  knownFiles?: KnownFiles;
  /** Images that lists have shown. By default, kept only for this process. */
  seenImages?: SeenImages;
  /** The protocol that the service has chosen. By default, kept only for this process. */
  knownProtocol?: KnownProtocol;
  /** Descriptions of the operations under way, for a process that exits without waiting for them. */
  running?: Set<string>;
  /** Returns numbers in [0, 1), to vary the waits before repeats. */
  random?: () => number;
}

/** The calls that commands make to a service, remote or in this process (`engine/service`). A build makes only those of ImageService and ImageInspector. */
export interface Service
  extends ImageService,
    ImageInspector,
    ImageChanges,
    ImageLayers,
    Caches,
    Pick<Images, "listImages" | "removeImage" | "untagImage" | "removeTag">,
    Accounts,
    OperationRecords,
    EventSnapshots,
    Terminals {}

/** Throws a BoughError of kind `usage` if the base address or the token is unusable. */
export function createService(options: ServiceOptions): Service {
  const { clock, signal } = options;
  const onNotice = options.onNotice ?? (() => undefined);
  const random = options.random ?? Math.random;
  const transport = createTransport({ ...options, onNotice, random });
  const capabilities = createCapabilities(transport);
  const operations = createOperations({
    transport,
    capabilities,
    clock,
    signal,
    onNotice,
    onServed: options.onServed,
    onImage: () => images.onNewImage(),
    random,
    running: options.running ?? new Set(),
  });
  const images = createImages({
    transport,
    operations,
    clock,
    signal,
    seen: options.seenImages ?? new Set(),
    capabilities,
  });
  const inspectRoutes = createInspectRoutes(transport, capabilities, images.hasImage);
  return {
    capabilities,
    base: parseBaseUrl(options.baseUrl).href,
    address: withoutCredentials(options.baseUrl).replace(/\/+$/, ""),
    isInThisProcess: false,
    packLayer: async () => undefined,
    openTree: async () => undefined,
    async uploadStream(body, stream) {
      // The import is dynamic, since most commands upload nothing.
      const { uploadStream } = await import("./files/upload-stream.ts");
      return uploadStream({ transport, clock, signal }, body, stream);
    },
    ...images,
    ...operations,
    ...createFiles({ transport, clock, signal, knownFiles: options.knownFiles }),
    ...createInspector(transport, capabilities, inspectRoutes),
    ...createAccounts(transport),
    ...createOperationRecords(transport, capabilities),
    ...createEventSnapshots(transport, signal),
    ...createTerminals(transport, { clock, signal }),
    ...createImageChanges(transport),
    ...createImageFiles(transport, inspectRoutes),
    ...createImageLayers(transport),
    ...createCaches(transport),
  };
}

/** The caches of cache mounts, of the extension `cache-archives`. */
interface Caches {
  /**
   * Opens the archive of a cache by its key, see `cacheKeyOf`. No command can use the cache until it is read. Rejects with a
   * NotFoundError if there is none, and if a command is using it.
   */
  openCache(key: string): Promise<ReadableStream<Uint8Array>>;
}

function createCaches(transport: Transport): Caches {
  return {
    async openCache(key) {
      const path = `/v1/caches/${encodeURIComponent(key)}`;
      const { body } = await transport.call({ method: "GET", path, repeatable: true, expects: "stream" });
      if (body instanceof ReadableStream) return body as ReadableStream<Uint8Array>;
      throw new BoughError(`the service sent no data for cache ${key}`);
    },
  };
}
