/** Certificates of registries and of this user, from the directories in which docker and skopeo look for them. */
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { BoughError } from "../errors.ts";
import { type Environment, findDockerDirectory, inHome } from "../home-directory.ts";
import { reasonOf } from "../system-error.ts";
import { filesIn, machineSettings } from "./registries-conf.ts";

/** The options of `fetch` for TLS. */
export interface TlsOptions {
  rejectUnauthorized?: boolean;
  ca?: string[];
  cert?: string;
  key?: string;
}

export interface TlsTrust {
  /** Returns the options for a host, which may have a port; `undefined` for Bun's defaults. */
  for(host: string): TlsOptions | undefined;
  /**
   * Trusts the machine's authorities, too, after a host's certificate was rejected with the options `used`. Returns false if another
   * attempt would trust no more authorities than that.
   */
  addMachineAuthorities(host: string, used: TlsOptions | undefined): boolean;
}

/** The files in which Linux distributions keep the authorities that the machine trusts. Bun has a list of its own. */
const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** @param isInsecure true to accept all certificates */
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
    // `fetch` reuses a connection only for the same object of options.
    if (!known.has(host)) known.set(host, find(host));
    return known.get(host);
  }

  return {
    for: optionsFor,
    addMachineAuthorities(host, used) {
      // A concurrent request may have added them.
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
  // This reads the keychain of macOS, or the certificate store of Windows.
  return process.getBuiltinModule("node:tls").getCACertificates("system");
}

function firstOf(bundles: readonly string[]): string[] {
  const found = bundles.map(readOptional).find((text) => text !== undefined);
  return found === undefined ? [] : [found];
}

/** Returns Bun's authorities. Loading them takes longer than a request, so they are loaded only if needed. */
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
    // Docker Desktop looks there.
    [process.platform === "linux" ? undefined : findDockerDirectory(environment), "certs.d"],
  ];
  // docker removes the colon, since no file name on Windows has one.
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
