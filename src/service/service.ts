/**
 * What a build asks of an image service: the one narrow interface between deciding (`builder/`) and acting
 * (`service/`). Every method rejects with a `BoughError` that names the call, the address and what the service said,
 * and with the signal's reason once the signal that the service was made with is aborted.
 */
import type { ImageConfig } from "../image/config.ts";
import type { ImageOrigin } from "../image/history.ts";
import type { LendFiles } from "./wire/file.ts";
import type { ImageCopy, InstanceRequest } from "./wire/instance.ts";
import type { LimitHit, OperationKind } from "./wire/operation.ts";

/** The seam to everything outside: the global fetch, or the embedded engine's handler. */
export type Fetch = (input: string | Request, init?: RequestInit) => Promise<Response>;

export interface ImageService extends ImageFiles {
  /** The base address without credentials, or `embedded engine (<directory>)`: for people. */
  readonly address: string;

  /** The base address as a URL: a UUID is one image of this service, and another one or none elsewhere. */
  readonly base: string;

  readonly capabilities: Capabilities;

  /**
   * The UUID of the image that `reference` (a UUID, `tag:<name>`, or a tag as written, then with `:latest`) names.
   * `undefined`: there is none. `"unsupported"`: this service cannot be asked for tags (it has no `GET /v1/images`).
   */
  findImage(reference: string): Promise<FoundImage | undefined | "unsupported">;

  /** Returns whether the service still has an image. `"unsupported"`: it cannot be asked. */
  hasImage(uuid: string): Promise<boolean | "unsupported">;

  /** Imports `url` (`docker://...`, or another transport on the engine), waits, and returns the new image's UUID. */
  importImage(request: ImageImport): Promise<string>;

  /** `tag` is complete (`name:tag`). Rejects with `NotFoundError` where the image is gone. */
  tagImage(uuid: string, tag: string): Promise<void>;

  /** An image's layers that bough has made, each with its bytes on disk. Only with the extension `layer-sizes`. */
  layerSizes(image: string): Promise<{ id: string; size: number }[]>;

  /**
   * The UUID of the image with the same files and this configuration, which is the whole of it. Only with the extension
   * `configure`; rejects with `NotFoundError` where the image is gone. `origin`: with the extension `history`; else the image's.
   */
  configureImage(uuid: string, config: ImageConfig, origin?: ImageOrigin): Promise<string>;

  /**
   * Makes sure that the service has each content, several at a time, and returns the file's id by SHA-256. Two items
   * with one hash are sent once. Rejects where a file's bytes are no longer those that were hashed.
   */
  uploadFiles(
    files: Iterable<LocalFile>,
    progress?: (done: UploadProgress) => void,
    options?: UploadOptions,
  ): Promise<Map<string, string>>;

  /**
   * Sends a large file, and hashes it meanwhile. Where the service is slow the hash is known before all is sent, and a content
   * that it turns out to have is not sent to its end. Rejects where a file's bytes are no longer those that were opened.
   */
  sendUnhashed(file: UnhashedFile, options: UnhashedOptions): Promise<SentFile>;

  /**
   * Lets a service in this very process take files where they are, for the request that names the loan; they are asked for when the
   * service comes to them. `undefined`: the service is elsewhere. Only with the extension `lent-files`.
   */
  readonly lendFiles: LendFiles | undefined;

  /** The id of the file with these bytes; `undefined` where the service has none, or does not say. */
  findFile(sha256: string): Promise<string | undefined>;

  /**
   * Sends bytes as they come, their number known or not, without ever holding them all. They can't be sent twice: each of
   * the stream's chunks is empty afterwards.
   */
  uploadStream(body: ReadableStream<Uint8Array>, options?: StreamOptions): Promise<UploadedFile>;

  /**
   * Starts an instance and returns the operation's id. Where the answer is lost, the operation is looked for by its `requestId`
   * (see request-id.ts). Where it isn't found, the request is sent again if it `mayRunTwice`, else the call rejects with an
   * UnknownOutcomeError.
   */
  spawn(request: InstanceRequest, options?: { requestId?: number; mayRunTwice?: boolean }): Promise<string>;

  /** Makes a number for `spawn`. */
  newRequestId(): number;

  /** The operation of a request that an earlier process has sent, or was about to send; needs `operationList`. */
  findSpawned(sent: SentRequest): Promise<string | undefined>;

  /**
   * Follows an operation to its end: by events where the service has them, else by polling. `onOutput` gets the bytes
   * as they arrive, as far as the service delivers them early; the outcome has all of them, unless the listener takes the rest. Rejects with an
   * OverdueError where it goes on for long after the timeout of its request: that of `spawn`, or else `timeoutSeconds`.
   */
  follow(
    operation: string,
    onOutput?: (chunk: OutputChunk) => void,
    listener?: EventListener,
    timeoutSeconds?: number,
  ): Promise<OperationOutcome>;

  /** Rejects with NotFoundError where the service knows no such operation. */
  hasEnded(operation: string): Promise<boolean>;

  /** Asks the service to stop an operation; works after the build's own signal was aborted. True: it is, or was, ended. */
  cancel(operation: string): Promise<boolean>;
}

/** Calls that a service may be without; `config`: an image's record with its configuration. */
export type OptionalCall = "config" | "events" | "imageList" | "inspect" | "operationList";

/** What a service can do beyond the calls that every one has. */
export interface Capabilities {
  /** The service has refused such a call: none is sent again. */
  lacks(call: OptionalCall): boolean;

  /** The service has answered such a call. */
  has(call: OptionalCall): boolean;

  /**
   * `linux/amd64` and its kind, where the service says what it runs: `platform` in its response to `GET /v1/whoami`, an
   * extension that bough's own engine has. `undefined`: it says nothing.
   */
  platform(): Promise<string | undefined>;

  /** Seconds: the longest `timeout` of an instance, where the service says it. */
  maxTimeoutSeconds(): Promise<number | undefined>;

  /**
   * What the service can do beyond the public API, by name: `extensions` in its response to `GET /v1/whoami`. Empty where
   * it says nothing. A request uses an extension only where the service names it.
   */
  extensions(): Promise<ReadonlySet<string>>;
}

interface SentRequest {
  requestId: number;
  /** The `truncate_output_at` that was asked for. */
  truncateAt: number;
  /** Milliseconds since the epoch: it was sent after that. */
  since: number;
}

export interface ImageImport {
  url: string;
  tag?: string | undefined;
  timeoutSeconds: number;
  /** Credentials for the registry; they go into the request and nowhere else. */
  credentials?: { username: string; password: string } | undefined;
  onProgress?: EventListener["onProgress"] | undefined;
}

export interface FoundImage {
  uuid: string;
  /** What it is, whoever has imported it, where the service says it: else its UUID is all that is known. */
  identity?: string;
  /** Set where the service says it, as are those that follow. */
  config?: ImageConfig;
  origin?: ImageOrigin;
}

/** A look into an image without starting anything. `"unsupported"`: this service has no such call. */
export interface ImageInspector {
  /** Links are followed by the service's own rules; `undefined`: there is nothing of that name. */
  pathType(image: string, path: string): Promise<PathType | undefined | "unsupported">;

  /** What is in a directory, by name; `undefined` where the service does not list it. */
  listTypes(image: string, directory: string): Promise<ReadonlyMap<string, PathType> | undefined>;

  /** `undefined`: there is no such file. */
  readFile(image: string, path: string): Promise<Uint8Array | undefined | "unsupported">;
}

export interface ImageFile {
  name: string;
  type: PathType;
  /** Permission bits, where the service tells them. */
  mode: number | null;
  uid: number;
  gid: number;
  size: number;
  /** Seconds since the epoch. */
  modified: number;
  /** The target of a link. */
  target: string | null;
}

/** Files of an image, without starting anything. */
export interface ImageFiles {
  /**
   * The SHA-256 of all that `COPY --from` would take from an image's files, times apart. Only with the extension `copies`;
   * rejects with
   * NotFoundError where the image is gone, or has no such files.
   */
  digestFiles(image: string, files: Pick<ImageCopy, "sources" | "parents" | "exclude">): Promise<string>;

  /** What is in a directory; of anything else, the thing itself. Rejects with NotFoundError. */
  listFiles(image: string, path: string): Promise<ImageFile[]>;
  /** One regular file's bytes as they come; `undefined` where the path leads to something else. */
  openFile(image: string, path: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** A tar archive of what is below a directory, as it comes. */
  openArchive(image: string, path: string): Promise<ReadableStream<Uint8Array>>;
}

export type PathType = "file" | "directory" | "symlink" | "other";

export interface LocalFile {
  absolutePath: string;
  sha256: string;
  size: number;
  /** What is in it, where somebody has read it for its hash and still has it. */
  content?: Uint8Array | undefined;
}

/** A file that is read for its hash and for the service at once. */
export interface UnhashedFile {
  size: number;
  /** Throws where it is not the file that was found. */
  open(): OpenFile;
}

export interface OpenFile {
  descriptor: number;
  /** Returns the number of bytes that were read. */
  read(buffer: Uint8Array, length: number, position: number): number;
  /** Throws where it is no longer the file that was found. */
  requireUnchanged(): void;
  /** Makes the error that it has changed. */
  changed(): Error;
  close(): void;
}

export interface UnhashedOptions {
  signal: AbortSignal;
  /** Tells the number of bytes that were passed on so far. */
  onBytes(bytes: number): void;
  /** Called before everything is sent, or where it can't be sent, too. */
  onHash(sha256: string): void;
}

export interface SentFile {
  uuid: string;
  sha256: string;
  isReused: boolean;
}

export interface StreamOptions {
  /** Tells the number of bytes that were passed on so far. */
  progress?: (bytes: number) => void;
  /** Exactly how many there will be, where the source has said so: the service is told before. */
  contentLength?: number | undefined;
  /** Sees the SHA-256 of all the bytes before the service has all of them: where it throws, nothing is stored. */
  inspect?: ((sha256: string) => void) | undefined;
}

interface UploadOptions {
  /** The caller has looked for them among what the service is known to have. */
  areUnknown?: boolean;
  /** Ends this upload alone. */
  signal?: AbortSignal;
  /** Tells of each content that the service has from now on, or had already. */
  onFile?: (sha256: string, isReused: boolean) => void;
}

export interface UploadedFile {
  uuid: string;
  sha256: string;
  size: number;
}

export interface UploadProgress {
  files: number;
  /** Bytes that went over the wire. */
  sentBytes: number;
  /** Contents that the service had already. */
  reused: number;
}

export interface OutputChunk {
  stream: "stdout" | "stderr";
  text: string;
}

/** Hears of what events bring, as far as the service delivers any. */
export interface EventListener {
  /** Output byte for byte, each once. */
  onBytes?(stream: OutputChunk["stream"], bytes: Uint8Array): void;
  /** What an import says of itself, for people. */
  onProgress?(message: string): void;
  /**
   * Output that no event has brought, at the end. Whoever takes it has been told all of the output: the outcome holds
   * none, and nothing else does.
   */
  onRest?(chunk: OutputChunk): void;
}

export interface OperationOutcome {
  operation: string;
  status: "SUCCESS" | "FAILED" | "CANCELLED";
  /** The service's own words where it could not run the command. */
  error: string | undefined;
  exitCode: number | undefined;
  timedOut: boolean;
  /** Limits that were hit, where the service says it (`resource-limits`). */
  limitsHit: readonly LimitHit[];
  stdout: CapturedOutput;
  stderr: CapturedOutput;
  /** The resulting image; for a command that changed nothing it may be the one it started from. */
  image: string | undefined;
  /** Its size, as far as the service says it. */
  imageBytes?: number | undefined;
  /** Time at work, where the service says it. */
  served?: Pick<ServedTime, "since" | "seconds">;
}

/** How long an operation took the service. */
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
