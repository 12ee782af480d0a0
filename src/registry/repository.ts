import { BoughError } from "../errors.ts";
import { registryHost } from "./hosts.ts";

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

/** Parses `HOST/NAME`, without a tag or a digest. Unless it `hasHost`, a name without one is that of Docker Hub. */
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
