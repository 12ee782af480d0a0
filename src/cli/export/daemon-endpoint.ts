/** Finds docker's daemon as docker's command line does. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { dockerDirectory, homeDirectory } from "../../home-directory.ts";
import type { TlsOptions } from "../../registry/certificates.ts";
import { asRecord, asText, type JsonRecord } from "../../service/http/json.ts";
import { sha256Of } from "../../sha256.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

export interface Endpoint {
  address: string;
  /** True if the user named it: then it must answer. */
  isNamed: boolean;
  tls?: TlsOptions;
}

/** Docker Desktop's, and that of Docker on Linux. */
const defaultAddress =
  process.platform === "win32" ? "npipe:////./pipe/docker_engine" : "unix:///var/run/docker.sock";
const usualPort = 2375;
/** The name of the context that docker's command line has without any. */
const noContext = "default";

/** DOCKER_HOST, else DOCKER_CONTEXT, else the current context of its configuration. */
export function findEndpoint(environment: Runtime["environment"]): Endpoint {
  const { DOCKER_HOST: host, DOCKER_CONTEXT, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH } = environment;
  const config = dockerDirectory(environment);
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
  if (!name || name === noContext) return { address: usualAddress(environment), isNamed: false };
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

/** Docker Desktop for macOS makes the usual socket only if its user wants that, and another one in any case. */
function usualAddress(environment: Runtime["environment"]): string {
  const own = join(homeDirectory(environment), ".docker/run/docker.sock");
  const isDesktop = process.platform === "darwin" && !existsSync("/var/run/docker.sock") && existsSync(own);
  return isDesktop ? `unix://${own}` : defaultAddress;
}

/** Fills in what docker's command line does: TCP, and the usual socket, host and port. */
function readAddress(given: string, source: string): string {
  const text = given.trim();
  const address = text.includes("://") ? text : `tcp://${text}`;
  if (address === "unix://") return defaultAddress;
  const [whole, host, port, path = ""] =
    /^tcp:\/\/(\[[^\]]*\]|[^/:]*)(?::(\d*))?(\/.*)?$/.exec(address) ?? [];
  if (whole !== undefined) return `tcp://${host || "localhost"}:${port || usualPort}${path}`;
  if (/^(unix|npipe|https?):\/\/./.test(address)) return address;
  throw usageError(
    `${source} is ${JSON.stringify(given)}: bough reaches docker at unix:// and tcp:// only`,
    address.startsWith("ssh:")
      ? `Write an archive, and let docker take it there: bough build -o type=docker,dest=- . | docker -H ${address} load`
      : "Write an archive: bough build -o type=docker,dest=image.tar .",
  );
}

function readTls(directory: string): TlsOptions {
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
    throw new BoughError(`cannot read docker's ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

function recordOf(value: unknown): JsonRecord {
  return asRecord(value) ?? {};
}
