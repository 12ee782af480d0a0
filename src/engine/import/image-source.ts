import { resolve } from "node:path";
import { BoughError } from "../../errors.ts";

/** Which image to import, in skopeo's terms. */
export interface ImageSource {
  /** `<transport>:<details>`; a relative local path made absolute. */
  name: string;
  /** `docker://`: from a registry, by its host. */
  registry: string | undefined;
  /**
   * Whether its manifest says how each layer is compressed. For the others skopeo claims gzip even where the layers are plain, as
   * they are in what `docker save` writes.
   */
  saysCompression: boolean;
}

const localTransports = [
  "dir",
  "oci",
  "oci-archive",
  "docker-archive",
  "containers-storage",
  "docker-daemon",
  "tarball",
  "sif",
  "ostree",
];
const truthfulTransports = ["dir", "oci", "oci-archive"];
const pathTransports = ["dir", "oci", "oci-archive", "docker-archive", "tarball", "sif"];

/** Over the network only registries may be named: a path would be one of the server's own machine. */
export function parseImageSource(url: string, transports: "all" | "registry"): ImageSource {
  const transport = url.slice(0, Math.max(url.indexOf(":"), 0));
  const details = url.slice(transport.length + 1);
  if (transport === "docker" && details.startsWith("//") && details.length > 2) {
    return { name: url, registry: registryHost(details.slice(2)), saysCompression: true };
  }
  if (!localTransports.includes(transport) || details === "") {
    throw new BoughError(`${JSON.stringify(url)} names no image: expected docker://HOST/NAME:TAG`);
  }
  if (transports === "registry") {
    throw new BoughError(`${transport}: cannot be imported through a server; only docker:// can`);
  }
  const isPath = pathTransports.includes(transport);
  return {
    name: isPath ? `${transport}:${resolve(details)}` : url,
    registry: undefined,
    saysCompression: truthfulTransports.includes(transport),
  };
}

/** As Docker reads it: without a dot, a colon or `localhost` the first segment is no host, and Docker Hub is meant. */
function registryHost(name: string): string {
  const [first, ...rest] = name.split("/");
  const isHost = first !== undefined && rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first : "docker.io";
}

/** Docker trusts a registry on the machine itself without TLS. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, "");
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}
