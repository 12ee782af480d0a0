/** Certificates of registries and of this user, where docker and skopeo look for them. */
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { BoughError } from "../errors.ts";
import { type Environment, findDockerDirectory, inHome } from "../home-directory.ts";
import { reasonOf } from "../system-error.ts";
import { filesIn, machineSettings } from "./registries-conf.ts";

/** Options of fetch. */
export interface TlsOptions {
  rejectUnauthorized?: boolean;
  ca?: string[];
  cert?: string;
  key?: string;
}

export interface TlsTrust {
  /** Returns the options for a host, which may have a port; `undefined` for those of Bun. */
  for(host: string): TlsOptions | undefined;
  /**
   * Called if a host's certificate is not accepted with the options that were `used`. Returns true if another attempt would trust
   * more authorities: the machine's own.
   */
  widen(host: string, used: TlsOptions | undefined): boolean;
}

/** Linux distributions keep the authorities that the machine trusts in one of these. Bun has a list of its own. */
const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** `isInsecure`: accepts all certificates. */
export function createTlsTrust(
  environment: Environment,
  isInsecure: boolean,
  { system = machineSettings, bundles }: { system?: string; bundles?: readonly string[] } = {},
): TlsTrust {
  const known = new Map<string, TlsOptions | undefined>();
  let machine: string[] | undefined;

  function find(host: string): TlsOptions | undefined {
    const own = findForHost(host, environment, system);
    // As for Go, these variables replace the machine's authorities.
    const roots = rootsOf(environment) ?? machine;
    if (isInsecure) return { ...own, rejectUnauthorized: false };
    if (own === undefined) return roots === undefined ? undefined : { ca: roots };
    return { ...own, ca: [...(roots ?? bundled()), ...(own.ca ?? [])] };
  }

  function optionsFor(host: string): TlsOptions | undefined {
    // Options that are the same object let fetch use a connection again.
    if (!known.has(host)) known.set(host, find(host));
    return known.get(host);
  }

  return {
    for: optionsFor,
    widen(host, used) {
      // A request that was sent at the same time may have widened them.
      if (optionsFor(host) !== used) return true;
      if (isInsecure || machine !== undefined || rootsOf(environment) !== undefined) return false;
      const found = bundles === undefined ? machineAuthorities() : firstOf(bundles);
      if (found.length === 0) return false;
      machine = [...found, ...bundled()];
      known.clear();
      return true;
    },
  };
}

function machineAuthorities(): string[] {
  if (process.platform === "linux") return firstOf(systemBundles);
  // The keychain, or the certificate store of Windows.
  return process.getBuiltinModule("node:tls").getCACertificates("system");
}

function firstOf(bundles: readonly string[]): string[] {
  const found = bundles.map(readOptional).find((text) => text !== undefined);
  return found === undefined ? [] : [found];
}

/** Loaded only if needed: that takes longer than a request. */
function bundled(): readonly string[] {
  return process.getBuiltinModule("node:tls").rootCertificates;
}

function rootsOf({ SSL_CERT_FILE, SSL_CERT_DIR }: Environment): string[] | undefined {
  if (!SSL_CERT_FILE && !SSL_CERT_DIR) return undefined;
  const files = SSL_CERT_FILE ? [SSL_CERT_FILE] : [];
  const directories = SSL_CERT_DIR ? SSL_CERT_DIR.split(delimiter) : [];
  return [...files, ...directories.flatMap((directory) => filesIn(directory, /./))].flatMap(
    (path) => readOptional(path) ?? [],
  );
}

/** https://github.com/containers/image/blob/main/docs/containers-certs.d.5.md: the first directory of the host counts. */
function findForHost(
  host: string,
  environment: Environment,
  system: string | undefined,
): TlsOptions | undefined {
  const { XDG_CONFIG_HOME } = environment;
  const parents: [string | undefined, string][] = [
    [XDG_CONFIG_HOME || inHome(environment, ".config"), "containers/certs.d"],
    [system, "containers/certs.d"],
    [system, "docker/certs.d"],
    // As Docker Desktop.
    [process.platform === "linux" ? undefined : findDockerDirectory(environment), "certs.d"],
  ];
  // As docker: no file name on Windows has a colon.
  const name = process.platform === "win32" ? host.replaceAll(":", "") : host;
  const found = parents
    .flatMap(([parent, directory]) => (parent === undefined ? [] : join(parent, directory, name)))
    .map((directory) => filesIn(directory, /\.(crt|cert)$/))
    .find((files) => files.length > 0);
  if (found === undefined) return undefined;
  const authorities = found.filter((path) => path.endsWith(".crt")).map(read);
  const client = found.find((path) => path.endsWith(".cert"));
  return {
    ...(authorities.length === 0 ? {} : { ca: authorities }),
    ...(client === undefined ? {} : { cert: read(client), key: read(client.replace(/cert$/, "key")) }),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new BoughError(`the certificate ${path} cannot be read: ${reasonOf(error)}`);
  }
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
