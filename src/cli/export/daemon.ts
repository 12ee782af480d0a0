/** Docker's daemon, for `--load`: https://docs.docker.com/reference/api/engine/ */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import type { Tls } from "../../registry/certificates.ts";
import { explainFault } from "../../service/http/connection.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";
import { readLines } from "../../streams.ts";
import { errorCode, meansDiskFull } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

export interface Daemon {
  /** As people write it: `unix:///var/run/docker.sock`. */
  address: string;
  /** The same for as long as the daemon keeps its images. */
  id: string;
  /** True if images are kept in containerd's store, by the digests of their manifests; else by those of their configurations. */
  hasContentStore: boolean;
  /** Returns the ids of all images. */
  listImages(): Promise<string[]>;
  /** Returns the digests of an image's unpacked layers, the lowest first. */
  layersOf(image: string): Promise<string[]>;
  /** Writes an image as an archive. Returns false if there is none of that name. */
  save(image: string, archive: string): Promise<boolean>;
  /** Loads an archive of images. Throws a BoughError with the daemon's reason. */
  load(archive: string): Promise<void>;
}

interface Endpoint {
  address: string;
  /** True if the user named it: then it must answer. */
  isNamed: boolean;
  tls?: Tls;
}

/** A failure of the daemon, which has a disk of its own. */
export class DaemonError extends BoughError {
  override readonly name = "DaemonError";
}

/** How a daemon is found, or why there is none. */
export type FoundDaemon = { daemon: Daemon } | { daemon: undefined; reason: string };

const defaultAddress = "unix:///var/run/docker.sock";
const usualPort = 2375;
const answerMilliseconds = 10_000;
/** A busy daemon with many images is slow. */
const listMilliseconds = 60_000;
/** The name of the context that docker's command line has without any. */
const noContext = "default";

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
    async save(image, archive) {
      const filters = encodeURIComponent(JSON.stringify({ reference: [image] }));
      const images = await read(`/images/json?filters=${filters}`);
      if (!Array.isArray(images) || images.length === 0) return false;
      try {
        await Bun.write(archive, await call(`/images/${encodeURIComponent(image)}/get`, undefined));
      } catch (error) {
        throw meansDiskFull(error) ? error : failed(error);
      }
      return true;
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

/** A store of containerd's keeps an image that it cannot unpack, and says so as it says that it has it. */
function failureIn({ error, errorDetail, stream }: JsonRecord): string | undefined {
  const said = asText(stream)?.trim();
  return said?.startsWith("Error unpacking image")
    ? said
    : (asText(error) ?? asText(recordOf(errorDetail).message));
}

type Call = (path: string, milliseconds: number | undefined, init?: RequestInit) => Promise<Response>;

function createCall({ address, tls }: Endpoint, { fetch, signal }: Pick<Runtime, "fetch" | "signal">): Call {
  const [, socket] = /^unix:\/\/(.*)$/.exec(address) ?? [];
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
    const response = await fetch(base.replace(/\/$/, "") + path, options);
    if (response.ok) return response;
    const text = await response.text();
    throw new BoughError(
      `docker: ${asText(parseRecord(text)?.message) ?? `it answered ${response.status} to ${path}`}`,
    );
  };
}

function recordOf(value: unknown): JsonRecord {
  return asRecord(value) ?? {};
}

function describe(error: unknown, address: string): string {
  if (error instanceof BoughError) return `${address}: ${error.message}`;
  if (["EACCES", "EPERM"].includes(errorCode(error) ?? ""))
    return `this user may not use the docker daemon at ${address}, as root and the group docker may`;
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

/** As docker's command line: DOCKER_HOST, else DOCKER_CONTEXT, else the current context of its configuration. */
function findEndpoint(environment: Runtime["environment"]): Endpoint {
  const {
    DOCKER_HOST: host,
    DOCKER_CONTEXT,
    DOCKER_CONFIG,
    DOCKER_TLS_VERIFY,
    DOCKER_CERT_PATH,
  } = environment;
  const config = DOCKER_CONFIG || join(homeDirectory(environment), ".docker");
  if (host) {
    const address = readAddress(host, "DOCKER_HOST");
    const isVerified = Boolean(DOCKER_TLS_VERIFY);
    const certificates = DOCKER_CERT_PATH || (isVerified ? config : undefined);
    const hasTls = address.startsWith("tcp:") && certificates !== undefined;
    return {
      address,
      // `docker compose` says it of the usual place, too.
      isNamed: address !== defaultAddress,
      ...(hasTls && { tls: { ...readTls(certificates), rejectUnauthorized: isVerified } }),
    };
  }
  const name = DOCKER_CONTEXT || asText(readJson(join(config, "config.json")).currentContext);
  if (!name || name === noContext) return { address: defaultAddress, isNamed: false };
  const key = sha256Of(name);
  const meta = join(config, "contexts/meta", key, "meta.json");
  const { docker } = recordOf(readJson(meta).Endpoints);
  const { Host: contextHost, SkipTLSVerify: skips } = recordOf(docker);
  const given = asText(contextHost);
  if (given === undefined)
    throw usageError(
      `docker has no context ${JSON.stringify(name)}, as DOCKER_CONTEXT or its configuration names it`,
      `\`docker context ls\` lists them. It would be in ${meta}.`,
    );
  const address = readAddress(given, `docker's context ${name}`);
  const certificates = join(config, "contexts/tls", key, "docker");
  return {
    address,
    isNamed: true,
    ...(existsSync(certificates) && {
      tls: { ...readTls(certificates), rejectUnauthorized: skips !== true },
    }),
  };
}

/** Fills in what docker's command line does: TCP, and the usual socket, host and port. */
function readAddress(given: string, source: string): string {
  const text = given.trim();
  const address = text.includes("://") ? text : `tcp://${text}`;
  if (address === "unix://") return defaultAddress;
  const [whole, host, port, path = ""] =
    /^tcp:\/\/(\[[^\]]*\]|[^/:]*)(?::(\d*))?(\/.*)?$/.exec(address) ?? [];
  if (whole !== undefined) return `tcp://${host || "localhost"}:${port || usualPort}${path}`;
  if (/^(unix|https?):\/\/./.test(address)) return address;
  throw usageError(
    `${source} is ${JSON.stringify(given)}: bough reaches docker at unix:// and tcp:// only`,
    address.startsWith("ssh:")
      ? `Write an archive, and let docker take it there: bough build -o type=docker,dest=- . | docker -H ${address} load`
      : "Write an archive: bough build -o type=docker,dest=image.tar .",
  );
}

function readTls(directory: string): Tls {
  const read = (name: string) => {
    const path = join(directory, name);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  };
  const [ca, cert, key] = [read("ca.pem"), read("cert.pem"), read("key.pem")];
  return { ...(ca && { ca: [ca] }), ...(cert && { cert }), ...(key && { key }) };
}

/** Returns an empty record if there is no such file. */
function readJson(path: string): JsonRecord {
  try {
    return recordOf(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return {};
    throw new BoughError(`cannot read docker's ${path}: ${messageOf(error)}`, { cause: error });
  }
}
