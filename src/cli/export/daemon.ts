/** Docker's daemon: https://docs.docker.com/reference/api/engine/ */
import { BoughError } from "../../errors.ts";
import { canRunOn, formatPlatform, type Platform } from "../../image/platform.ts";
import { explainFault } from "../../service/http/connection.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { readLines } from "../../streams.ts";
import { errorCode, isDiskFullError } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";
import { type Endpoint, findEndpoint } from "./daemon-endpoint.ts";

export interface Daemon {
  /** The address as people write it: `unix:///var/run/docker.sock`. */
  address: string;
  /** The same for as long as the daemon keeps its images. */
  id: string;
  /** True if images are kept in containerd's store, by the digests of their manifests; else by those of their configurations. */
  hasContentStore: boolean;
  /** Returns the ids of all images. */
  listImages(): Promise<string[]>;
  /** Returns the digests of an image's unpacked layers, the lowest first. */
  layersOf(image: string): Promise<string[]>;
  /**
   * Finds the image that a name, or a name with a digest, means for a platform. Throws a BoughError if the image is there for others only,
   * in a store that could have it.
   */
  findImage(reference: string, platform: Platform): Promise<StoredImage | undefined>;
  /** Writes an image for a platform as an archive of `docker save`. */
  save(image: Pick<StoredImage, "id">, platform: Platform, archive: string): Promise<void>;
  /** Loads an archive of images. Throws a BoughError with the daemon's reason. */
  load(archive: string): Promise<void>;
}

interface StoredImage {
  /** A digest: of the image's configuration, or of its manifest or index if images are kept in containerd's store. */
  id: string;
  /** `NAME@DIGEST` in the registries that have it. */
  repoDigests: string[];
}

/** A failure of the daemon, which has a disk of its own. */
export class DaemonError extends BoughError {
  override readonly name = "DaemonError";
}

/** How a daemon is found, or why there is none. */
type FoundDaemon = { daemon: Daemon } | { daemon: undefined; reason: string };

const answerMilliseconds = 10_000;
/** A busy daemon with many images is slow. */
const listMilliseconds = 60_000;

/**
 * Finds the daemon that docker's command line would use. There is none if the user has named none, and nobody listens at the
 * usual place.
 */
export async function findDaemon(runtime: Runtime): Promise<FoundDaemon> {
  const endpoint = findEndpoint(runtime.environment);
  const call = createCall(endpoint, runtime);
  try {
    const info = recordOf(await (await call("/info", answerMilliseconds)).json());
    const id = asText(info.ID);
    if (id === undefined) throw new BoughError("what answers there is no docker daemon");
    const status = Array.isArray(info.DriverStatus) ? info.DriverStatus : [];
    const hasContentStore = status.some(
      (pair: unknown) => Array.isArray(pair) && String(pair[1]).startsWith("io.containerd.snapshotter"),
    );
    return { daemon: openDaemon(endpoint, { id, hasContentStore }, call, runtime.signal) };
  } catch (error) {
    runtime.signal.throwIfAborted();
    const reason = describe(error, endpoint.address);
    const { isNamed } = endpoint;
    if (!isNamed && isAbsent(error)) return { daemon: undefined, reason };
    const named = isNamed ? "DOCKER_HOST, DOCKER_CONTEXT or `docker context use` names that daemon. " : "";
    throw new BoughError(reason, {
      hint: `${named}\`bough build\` without --load keeps the image in bough's store.`,
      cause: error,
    });
  }
}

function openDaemon(
  { address }: Endpoint,
  known: Pick<Daemon, "id" | "hasContentStore">,
  call: Call,
  signal: AbortSignal,
): Daemon {
  const failed = (error: unknown, hint?: string) => {
    signal.throwIfAborted();
    const message =
      error instanceof BoughError
        ? error.message
        : `the docker daemon at ${address} has failed: ${explainFault(error).reason}`;
    return new DaemonError(message, { hint, cause: error });
  };
  const kept = "The image is in bough's store: the same build, from its cache, gives it to docker again.";
  const read = async (path: string, hint?: string): Promise<unknown> => {
    try {
      return await (await call(path, listMilliseconds)).json();
    } catch (error) {
      throw failed(error, hint);
    }
  };
  const readIfPresent = async (path: string): Promise<JsonRecord | undefined> => {
    try {
      return recordOf(await (await call(path, listMilliseconds)).json());
    } catch (error) {
      if (error instanceof ResponseError && error.status === 404) return undefined;
      throw failed(error);
    }
  };
  return {
    address,
    ...known,
    async listImages() {
      const images = await read("/images/json", kept);
      return (Array.isArray(images) ? images : []).flatMap((image) => asText(recordOf(image).Id) ?? []);
    },
    async layersOf(image) {
      const { RootFS } = recordOf(await read(`/images/${encodeURIComponent(image)}/json`));
      const { Layers: layers } = recordOf(RootFS);
      return Array.isArray(layers) ? layers.map(String) : [];
    },
    async findImage(reference, platform) {
      const path = `/images/${encodeURIComponent(reference)}/json`;
      const found = await readIfPresent(path);
      const id = asText(found?.Id);
      if (found === undefined || id === undefined) return undefined;
      const own = platformOf(found);
      if (own !== undefined && !canRunOn(own, platform)) {
        // Only containerd's store may have several images of one name.
        if (!known.hasContentStore) return undefined;
        if ((await readIfPresent(`${path}?${platformQuery(platform)}`)) === undefined)
          throw new BoughError(
            `docker has ${reference} for ${formatPlatform(own)}, not for ${formatPlatform(platform)}`,
            {
              hint: `\`docker pull --platform ${formatPlatform(platform)} ${reference}\` gets it, if its registry has it.`,
            },
          );
      }
      const digests = Array.isArray(found.RepoDigests) ? found.RepoDigests : [];
      return { id, repoDigests: digests.flatMap((digest) => asText(digest) ?? []) };
    },
    async save({ id }, platform, archive) {
      const query = known.hasContentStore ? `?${platformQuery(platform)}` : "";
      try {
        await Bun.write(archive, await call(`/images/${encodeURIComponent(id)}/get${query}`, undefined));
      } catch (error) {
        throw isDiskFullError(error) ? error : failed(error);
      }
    },
    async load(archive) {
      try {
        const response = await call("/images/load?quiet=1", undefined, {
          method: "POST",
          headers: { "content-type": "application/x-tar" },
          body: Bun.file(archive),
        });
        for await (const line of response.body === null ? [] : readLines(response.body)) {
          const failure = failureIn(parseRecord(line) ?? {});
          if (failure !== undefined) throw new BoughError(`docker: ${failure}`);
        }
      } catch (error) {
        throw failed(error, kept);
      }
    },
  };
}

function platformOf({ Os, Architecture, Variant }: JsonRecord): Platform | undefined {
  const [os, architecture, variant = ""] = [Os, Architecture, Variant].map(asText);
  return os && architecture ? { os, architecture, variant } : undefined;
}

function platformQuery({ os, architecture, variant }: Platform): URLSearchParams {
  const platform = { os, architecture, ...(variant !== "" && { variant }) };
  return new URLSearchParams({ platform: JSON.stringify(platform) });
}

/** A store of containerd's keeps an image that it cannot unpack, and says so as it says that it has it. */
function failureIn({ error, errorDetail, stream }: JsonRecord): string | undefined {
  const said = asText(stream)?.trim();
  return said?.startsWith("Error unpacking image")
    ? said
    : (asText(error) ?? asText(recordOf(errorDetail).message));
}

class ResponseError extends BoughError {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

interface CallOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: Blob;
}

type Call = (path: string, milliseconds: number | undefined, init?: CallOptions) => Promise<Response>;

function createCall({ address, tls }: Endpoint, { fetch, signal }: Pick<Runtime, "fetch" | "signal">): Call {
  const [, socket] = /^unix:\/\/(.*)$/.exec(address) ?? [];
  const [, pipe] = /^npipe:\/\/(.*)$/.exec(address) ?? [];
  const base =
    socket === undefined ? address.replace(/^tcp:/, tls === undefined ? "http:" : "https:") : "http://docker";
  return async (path, milliseconds, init = {}) => {
    const signals = milliseconds === undefined ? [signal] : [signal, AbortSignal.timeout(milliseconds)];
    const options = {
      ...init,
      signal: AbortSignal.any(signals),
      // A large image takes longer than Bun waits.
      timeout: false,
      ...(socket !== undefined && { unix: socket }),
      ...(tls !== undefined && { tls }),
    };
    const response =
      pipe === undefined
        ? await fetch(base.replace(/\/$/, "") + path, options)
        : await (await import("./pipe-fetch.ts")).fetchThroughPipe(pipe.replaceAll("/", "\\"), path, options);
    if (response.ok) return response;
    const text = await response.text();
    throw new ResponseError(
      `docker: ${asText(parseRecord(text)?.message) ?? `it answered ${response.status} to ${path}`}`,
      response.status,
    );
  };
}

function recordOf(value: unknown): JsonRecord {
  return asRecord(value) ?? {};
}

function describe(error: unknown, address: string): string {
  if (error instanceof BoughError) return `${address}: ${error.message}`;
  if (["EACCES", "EPERM"].includes(errorCode(error) ?? ""))
    return `this user may not use the docker daemon at ${address}, as ${
      process.platform === "win32" ? "the group docker-users may" : "root and the group docker may"
    }`;
  if (error instanceof Error && error.name === "TimeoutError")
    return `the docker daemon at ${address} does not answer`;
  const reason = isAbsent(error) ? "" : `: ${explainFault(error).reason}`;
  return `no docker daemon answers at ${address}${reason}`;
}

function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "FailedToOpenSocket", "ConnectionRefused"].includes(
    errorCode(error) ?? "",
  );
}
