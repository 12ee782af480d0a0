import { BoughError } from "../errors.ts";

/** A repository of a registry. */
export interface Repository {
  /** The registry as people write it: `docker.io`, or a host, which may have a port. */
  registry: string;
  /** The host and port that requests go to. */
  host: string;
  /** The path within the registry: `library/busybox`. */
  name: string;
  /** `docker://REGISTRY/NAME` */
  address: string;
}

export const hub = "docker.io";
/** https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests */
const namePattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;

/** Parses `HOST/NAME`, without a tag or a digest. Unless `hasHost` is true, a name without a host belongs to Docker Hub. */
export function parseRepository(text: string, hasHost = false): Repository {
  const written = hasHost ? text.slice(0, Math.max(text.indexOf("/"), 0)) : registryHost(text);
  const registry = /^(index|registry-1)\.docker\.io$/.test(written) ? hub : written;
  const path = text.startsWith(`${written}/`) ? text.slice(written.length + 1) : text;
  const name = registry === hub && !path.includes("/") ? `library/${path}` : path;
  const host = registry === hub ? "registry-1.docker.io" : registry;
  if (!namePattern.test(name) || !URL.canParse(`https://${host}/`) || /[/?#@\\\s]/.test(host))
    throw new BoughError(`invalid repository ${JSON.stringify(text)}`, {
      hint: "A repository is HOST/NAME, in lower case and without a tag, such as registry.example/team/app.",
    });
  return { registry, host, name, address: `docker://${registry}/${name}` };
}

/** Returns the full name of a tag, as docker stores it: `docker.io/library/app:1` for `app:1`. An invalid name stays as it is. */
export function normalizedName(tag: string): string {
  const [, name = tag, rest = ""] = /^(.*?)(:[^:/]*)?$/.exec(tag) ?? [];
  try {
    return `${parseRepository(name).address.slice("docker://".length)}${rest}`;
  } catch {
    return tag;
  }
}

/**
 * Parses `[https://]HOST[:PORT][/PATH]`, as `--registry-mirror` takes it. `http://` allows a mirror without TLS. Returns `undefined`
 * if it is invalid.
 */
export function parseMirror(text: string): { location: string; isInsecure: boolean } | undefined {
  const [, scheme = "", location = ""] = /^(https?:\/\/)?([^/].*?)\/*$/.exec(text) ?? [];
  try {
    parseRepository(`${location}/name`, true);
    return { location, isInsecure: scheme === "http://" };
  } catch {
    return undefined;
  }
}

/** Returns a name's registry, as Docker does: Docker Hub, unless the first segment has a dot or a colon or is `localhost`. */
export function registryHost(name: string): string {
  const [first, ...rest] = name.split("/");
  const isHost = first !== undefined && rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first : "docker.io";
}

/** True for a registry on this machine, which Docker uses without TLS. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, "");
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/** True if a redirect leads from an address with TLS to one without. */
export function isDowngrade(from: URL, to: URL): boolean {
  return from.protocol === "https:" && to.protocol === "http:";
}

/** True for a registry whose certificate is verified: by the user's setting, else for all that are not on this machine. */
export function verifiesTls(
  registry: string,
  { BOUGH_TLS_VERIFY }: Readonly<Record<string, string | undefined>>,
): boolean {
  return BOUGH_TLS_VERIFY === "true" || (BOUGH_TLS_VERIFY !== "false" && !isLoopback(registry));
}
