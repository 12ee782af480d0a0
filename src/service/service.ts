/**
 * The calls that a build makes to an image service: the one narrow interface between deciding (`builder/`) and acting
 * (`service/`). Every method rejects with a `BoughError` that names the call, the address and the service's message. It rejects
 * with the signal's reason once the signal of the service is aborted.
 */
import type { ImageConfig } from "../image/config.ts";
import type { ImageOrigin } from "../image/history.ts";
import type { LayerBlob } from "../image/layer-header.ts";
import type { PackJob } from "../image/layer-writer.ts";
import type { TreeEntry } from "../image/tree-entry.ts";
import type { Secret } from "../secret.ts";
import type {
  LocalFile,
  SendOnce,
  SentFile,
  StreamOptions,
  UnhashedOptions,
  UploadedFile,
  UploadOptions,
  UploadProgress,
} from "./files/upload.ts";
import type { ImageFiles } from "./images/image-file.ts";
import type { UnhashedFile } from "./wire/file.ts";
import type { DeclaredImage, RemoteImageRequest } from "./wire/image.ts";
import type { InstanceRequest } from "./wire/instance.ts";
import type { LimitHit, OperationKind } from "./wire/operation.ts";

/** The connection to everything outside: the global fetch. */
export type Fetch = (input: string | Request, init?: RequestInit) => Promise<Response>;

export interface ImageService extends ImageFiles {
  /** The base address without credentials, or `embedded engine (<directory>)`: for people. */
  readonly address: string;

  /** The base address as a URL. A UUID identifies an image only within this service. */
  readonly base: string;

  readonly capabilities: Capabilities;

  /**
   * Returns the UUID of the image that `reference` names: a UUID, `tag:<name>`, or a tag, tried as written and then with
   * `:latest`. `undefined` if there is none. `"unsupported"` if this service can't look up tags (it has no `GET /v1/images`).
   * A tag may name an image for each platform: without `platform`, the one for the service's own comes first.
   */
  findImage(reference: string, platform?: string): Promise<FoundImage | undefined | "unsupported">;
  /** Returns the platforms of the images that have a tag, or Docker's other name for it; none if the service does not say them. */
  platformsOf(tag: string): Promise<string[]>;

  /** True if the service still has an image. `"unsupported"` if it can't be asked. */
  hasImage(uuid: string): Promise<boolean | "unsupported">;

  /** Imports `url` (`docker://...`, or another transport on the engine), waits, and returns the new image's UUID. */
  importImage(request: ImageImport): Promise<string>;

  /**
   * Records an image without its layers, which the service fetches when they are needed; the same image always gets the same UUID.
   * Only with the extension `remote-layers`. Rejects with `NotFoundError` if one of them could not be fetched a moment ago.
   */
  declareImage(request: RemoteImageRequest): Promise<DeclaredImage>;
  /** Asks the places of layers that the service does not have yet. Returns false if one is gone, with which the image is. */
  probeImage(uuid: string): Promise<boolean>;

  /** Sets a complete tag (`name:tag`). Rejects with `NotFoundError` if the image is gone. */
  tagImage(uuid: string, tag: string): Promise<void>;

  /** Returns the layers of an image that bough has made, each with its bytes on disk. Only with the extension `layer-sizes`. */
  layerSizes(image: string): Promise<{ id: string; size: number }[]>;

  /**
   * Returns the UUID of the image with the same files and exactly this configuration. Only with the extension `configure`;
   * rejects with `NotFoundError` if the image is gone. `origin` needs the extension `history`; default: the image's own.
   */
  configureImage(uuid: string, config: ImageConfig, origin?: ImageOrigin): Promise<string>;

  /**
   * Makes sure that the service has each content, several at a time, and returns the file's id by SHA-256. Two items with one
   * hash are sent once. Rejects if a file's bytes differ from those that were hashed.
   */
  uploadFiles(
    files: Iterable<LocalFile>,
    progress?: (done: UploadProgress) => void,
    options?: UploadOptions,
  ): Promise<Map<string, string>>;

  /**
   * Sends a large file, and hashes it meanwhile. With a slow service the hash is known before all bytes are sent; if the service
   * turns out to have the content, the rest is not sent. Rejects if the file has changed since it was opened.
   */
  sendUnhashed(file: UnhashedFile, options: UnhashedOptions): Promise<SentFile>;

  readonly sendOnce: SendOnce;

  /** True if the service is in this process: it reads the `host_files` of a request where they are. */
  readonly isInThisProcess: boolean;

  /** Packs a layer into a file, in a thread if it is large. Returns `undefined` if it is stored as a blob, or gone, or elsewhere. */
  packLayer(image: string, layer: string, job: Omit<PackJob, "signal">): Promise<LayerBlob | undefined>;

  /**
   * Yields what is below a directory of an image, directories before their contents, with paths relative to it. Returns `undefined`
   * if there is no such directory, or the service is elsewhere.
   */
  openTree(image: string, path: string): Promise<AsyncIterable<TreeEntry> | undefined>;

  /** Returns the id of the file with these bytes; `undefined` if the service has none, or does not say. */
  findFile(sha256: string): Promise<string | undefined>;

  /**
   * Sends bytes as they come, of known or unknown length, without ever holding all of them. Each of the stream's chunks is empty
   * afterwards, so only a body that a function makes can be sent again after a failure that may be temporary.
   */
  uploadStream(
    body: ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>),
    options?: StreamOptions,
  ): Promise<UploadedFile>;

  /**
   * Starts an instance and returns the operation's id. If the response is lost, the operation is looked for by its request id
   * (see request-id.ts), by default one that no other request has. If it isn't found, the request is sent again if it
   * `mayRunTwice`, else the call rejects with an UnknownOutcomeError.
   */
  spawn(
    request: InstanceRequest,
    options?: Partial<Pick<SentRequest, "requestId" | "repeats">> & { mayRunTwice?: boolean },
  ): Promise<string>;

  /** Finds the operation of a request that an earlier process has sent, or was about to send. Needs `operationList`. */
  findSpawned(sent: SentRequest): Promise<string | undefined>;

  /**
   * Follows an operation to its end: by events if the service has them, else by polling. `onOutput` gets the bytes as they
   * arrive, as far as the service delivers them early. The outcome has all of them, unless the listener takes the rest. Rejects
   * with an OverdueError if the operation goes on for long after the timeout of its request: that of `spawn`, or else
   * `timeoutSeconds`.
   */
  follow(
    operation: string,
    onOutput?: (chunk: OutputChunk) => void,
    listener?: EventListener,
    timeoutSeconds?: number,
  ): Promise<OperationOutcome>;

  /** Rejects with NotFoundError if the service knows no such operation. */
  hasEnded(operation: string): Promise<boolean>;

  /**
   * Asks the service to stop an operation; works after the build's own signal was aborted. Returns true if the operation is, or
   * was, ended.
   */
  cancel(operation: string): Promise<boolean>;
}

/** Calls that a service may lack. `config` is an image's record with its configuration. */
export type OptionalCall = "config" | "events" | "imageList" | "inspect" | "operationList";

/** Capabilities of a service in addition to the calls that every service has. */
export interface Capabilities {
  /** True if the service has refused such a call: none is sent again. */
  lacks(call: OptionalCall): boolean;

  /** True if the service has responded to such a call. */
  has(call: OptionalCall): boolean;

  /**
   * Returns the platform that the service runs, such as `linux/amd64`: `platform` in its response to `GET /v1/whoami`, an
   * extension of bough's own engine. `undefined` if it does not say.
   */
  platform(): Promise<string | undefined>;

  /**
   * True if a request may give the user of its process as numbers. A service that does not describe accounts
   * (`GET /v1/whoami`) may know no field that the specification does not name, and run the command as root.
   */
  takesUserNumbers(): Promise<boolean>;

  /** Returns the maximum `timeout` of an instance, if the service reports it. */
  maxTimeoutSeconds(): Promise<number | undefined>;

  /**
   * Returns the names of the service's extensions of the public API: `extensions` in its response to `GET /v1/whoami`. Empty if
   * there are none. A request uses an extension only if the service names it.
   */
  extensions(): Promise<ReadonlySet<string>>;
}

/** A request id that other requests have, too: of the same step, earlier or by other clients. */
export interface RepeatedId {
  /** True if an operation is that of another request. */
  isOfAnother(operation: string): boolean;
}

interface SentRequest {
  requestId: number;
  repeats?: RepeatedId;
  /** The `truncate_output_at` of the request, without the request id. */
  truncateAt: number;
  /** Milliseconds since the epoch: a time before it was sent. */
  since: number;
}

export interface ImageImport {
  url: string;
  tag?: string | undefined;
  /** By default the service's own. Others need the extension `platforms`. */
  platform?: string | undefined;
  timeoutSeconds: number;
  /** Credentials for the registry; they go only into the request. */
  credentials?: { username: string; password: Secret } | undefined;
  onProgress?: EventListener["onProgress"] | undefined;
}

export interface FoundImage {
  uuid: string;
  /** Identifies its content, whichever way it was imported, if the service reports it. Without it only the UUID is known. */
  identity?: string;
  /** Set if the service reports it, as is `origin`. */
  config?: ImageConfig;
  origin?: ImageOrigin;
  /** `linux/arm64`, if the service reports it. */
  platform?: string;
}

export interface OutputChunk {
  stream: "stdout" | "stderr";
  text: string;
}

/** Receives what events report, as far as the service delivers them. */
export interface EventListener {
  /** Output, byte for byte, each byte once. */
  onBytes?(stream: OutputChunk["stream"], bytes: Uint8Array): void;
  /** Progress of an import, or of fetching the layers that a command needs, for people. */
  onProgress?(message: string): void;
  /** The service has what the operation needs, and starts its command. */
  onStart?(): void;
  /** Gets what the service warns of while it prepares the operation. Part of the extension `cache-archives`. */
  onWarning?(message: string): void;
  /**
   * Output that no event has brought, at the end. With this listener the outcome holds no output, because the listener has
   * received all of it.
   */
  onRest?(chunk: OutputChunk): void;
}

export interface OperationOutcome {
  operation: string;
  status: "SUCCESS" | "FAILED" | "CANCELLED";
  /** The service's own message if it could not run the command. */
  error: string | undefined;
  exitCode: number | undefined;
  timedOut: boolean;
  /** Limits that were hit, if the service reports them (`resource-limits`). */
  limitsHit: readonly LimitHit[];
  /** True if the command could not be run because the service's disk is full, if the service says so. */
  isDiskFull?: boolean;
  stdout: CapturedOutput;
  stderr: CapturedOutput;
  /** The resulting image; for a command that changed nothing it may be the one it started from. */
  image: string | undefined;
  /** Its size, if the service reports it. */
  imageBytes?: number | undefined;
  /** Time that it ran, if the service reports it. */
  served?: Pick<ServedTime, "since" | "seconds">;
}

/** The time that an operation took the service. */
export interface ServedTime {
  operation: string;
  kind: OperationKind;
  /** Milliseconds since the epoch, by the service's clock. */
  since: number;
  seconds: number;
}

/** Decoded as UTF-8 with replacement, across chunk borders. */
export interface CapturedOutput {
  text: string;
  truncated: boolean;
}
