import { resolve } from "node:path";
import { BoughError } from "../../errors.ts";
import { registryHost } from "../../registry/repository.ts";

/** The image to import. */
export type ImageSource =
  /** An image of a registry (`docker://...`), which skopeo downloads. `registry` is its host. */
  | { kind: "registry"; name: string; registry: string }
  | LocalSource
  /** The empty image of `FROM scratch`. */
  | { kind: "scratch"; name: string };

/** A directory or an archive on this machine, which bough itself reads. */
export interface LocalSource {
  kind: LocalKind;
  name: string;
  path: string;
  reference: string | undefined;
}

/** Image formats on disk, by skopeo's names. */
type LocalKind = (typeof localKinds)[number];

const localKinds = ["oci", "oci-archive", "docker-archive", "dir"] as const;
/** Other sources that skopeo supports: another program's image store, or a file that needs a special program. */
const refusedKinds = ["containers-storage", "docker-daemon", "ostree", "sif", "tarball"];

/** Parses the URL of an image. A server accepts only registries, since a path would be one of its own machine. */
export function parseImageSource(url: string, { isServer }: { isServer: boolean }): ImageSource {
  if (url === "scratch") return { kind: "scratch", name: url };
  const transport = url.slice(0, Math.max(url.indexOf(":"), 0));
  const details = url.slice(transport.length + 1);
  if (transport === "docker" && details.startsWith("//") && details.length > 2) {
    return { kind: "registry", name: url, registry: registryHost(details.slice(2)) };
  }
  const kind = localKinds.find((known) => known === transport);
  const isKnown = kind !== undefined || refusedKinds.includes(transport);
  if (!isKnown || details === "") {
    throw new BoughError(`invalid image ${JSON.stringify(url)}: expected docker://HOST/NAME:TAG`);
  }
  if (isServer) {
    throw new BoughError(`${transport}: cannot be imported through a server, only docker:// can`);
  }
  if (kind === undefined) {
    const possible = localKinds.map((known) => `${known}:`).join(", ");
    throw new BoughError(`${transport}: cannot be imported; docker:// can, and on this machine ${possible}`);
  }
  // A directory in skopeo's own format holds only one image, so it has no reference.
  const colon = kind === "dir" ? -1 : details.indexOf(":");
  const path = resolve(colon === -1 ? details : details.slice(0, colon));
  const reference = colon === -1 ? undefined : details.slice(colon + 1);
  const name = reference === undefined ? `${kind}:${path}` : `${kind}:${path}:${reference}`;
  return { kind, name, path, reference: reference === "" ? undefined : reference };
}
