import { resolve } from "node:path";
import { BoughError } from "../../errors.ts";
import { colonAfterPath } from "../../paths/local-path.ts";
import { withLatest } from "../../service/images/reference.ts";
import type { Output } from "../process/runtime.ts";

/** The destination of an export or push. Paths are absolute. */
export type Destination =
  | ({ kind: "oci"; path: string } & OciNames)
  /** Archives; without a path, they go to standard output. */
  | ({ kind: "oci-archive"; path: string | undefined } & OciNames)
  | {
      kind: "docker-archive";
      path: string | undefined;
      name: string | undefined;
      otherNames?: readonly string[];
    }
  | { kind: "tar"; path: string | undefined }
  | { kind: "dir" | "rootfs"; path: string }
  /** Docker's daemon; without names, the image has only its id there. */
  | { kind: "daemon"; names: readonly string[] }
  /** `HOST/NAME:TAG`, as skopeo takes it; `HOST/NAME` for an image that is pushed by its digest alone. */
  | { kind: "registry"; reference: string; byDigest?: boolean };

/** How an index names an image. */
interface OciNames {
  /** skopeo's name, in most cases a tag. */
  name: string | undefined;
  /** Whole names, such as `docker.io/library/app:1`, which docker and containerd give the image. There is an entry for each. */
  wholeNames?: readonly string[];
}

/** `local`: only the files, owned by this user, in a directory that may have others. */
export type OutputDestination = Destination | { kind: "local"; path: string };

const kinds = ["oci", "oci-archive", "docker-archive", "dir", "rootfs", "tar"] as const;

/** Parses a destination: one of skopeo's transports, or `rootfs` or `tar`, which are bough's own, for the plain tree. */
export function parseDestination(text: string, workingDirectory: string): Destination {
  if (text.startsWith("docker://")) return registryDestination(text.slice("docker://".length));
  const colon = text.indexOf(":");
  const kind = kinds.find((known) => known === text.slice(0, Math.max(colon, 0)));
  const details = text.slice(colon + 1);
  if (kind === undefined || details === "") throw invalid(text);
  const archivePath = (path: string) => (path === "-" ? undefined : resolve(workingDirectory, path));
  if (kind === "tar") return { kind, path: archivePath(details) };
  if (kind === "dir" || kind === "rootfs") return { kind, path: resolve(workingDirectory, details) };
  // skopeo's syntax: the first colon ends the path.
  const end = colonAfterPath(details);
  const path = end === -1 ? details : details.slice(0, end);
  const name = end === -1 ? "" : details.slice(end + 1);
  if (path === "") throw invalid(text);
  if (kind === "oci")
    return { kind, path: resolve(workingDirectory, path), name: checkName(kind, name, text) };
  return { kind, path: archivePath(path), name: checkName(kind, name, text) };
}

export function registryDestination(name: string): Destination {
  if (/^[^\s@]+$/.test(name) && !name.startsWith("/"))
    return { kind: "registry", reference: withLatest(name) };
  throw new BoughError(`${JSON.stringify(name)} is not a place in a registry: expected HOST/NAME:TAG`, {
    kind: "usage",
  });
}

/** Returns the repository that an image is pushed to without a tag. Throws if the name has one. */
export function digestDestination(name: string): Destination {
  const destination = pushDestination(name, name);
  if (withLatest(name) === `${name}:latest`) return { kind: "registry", reference: name, byDigest: true };
  throw new BoughError(
    `can't push tagged ref ${nameDestination(destination).slice("docker://".length)} by digest`,
    {
      kind: "usage",
      hint: "Give HOST/NAME without a tag: the image is found by its digest.",
    },
  );
}

/** Returns the registry that an image's own tag names. Throws if the tag has no host, which docker would take for Docker Hub. */
export function pushDestination(tag: string | undefined, reference: string): Destination {
  const [host = "", ...path] = (tag ?? "").split("/");
  if (tag !== undefined && path.length > 0 && (/[.:]/.test(host) || host === "localhost"))
    return registryDestination(tag);
  throw new BoughError(`${reference} does not say which registry to push to`, {
    kind: "usage",
    hint: `Give HOST/NAME:TAG, as in \`bough push ${reference} HOST/NAME:TAG\`.`,
  });
}

/** True if the image itself goes to standard output, where nothing else may be printed then. */
export function goesToStandardOutput(destination: Destination): boolean {
  return (
    !["registry", "daemon"].includes(destination.kind) &&
    !("path" in destination && destination.path !== undefined)
  );
}

/** Refuses to write an archive to a terminal, as docker buildx does. */
export function refuseTerminal(destination: Destination, { isTerminal }: Pick<Output, "isTerminal">): void {
  if (!isTerminal || !goesToStandardOutput(destination)) return;
  throw new BoughError("an archive cannot be written to a terminal", {
    kind: "usage",
    hint: "Name a file, or redirect it: `... > image.tar`, `... | docker load`.",
  });
}

/** Returns the destination as people would write it. */
export function nameDestination(destination: Destination): string {
  if (destination.kind === "registry") return `docker://${destination.reference}`;
  if (destination.kind === "daemon") return `docker-daemon:${destination.names[0] ?? ""}`;
  const name = "name" in destination && destination.name !== undefined ? `:${destination.name}` : "";
  return `${destination.kind}:${destination.path ?? "-"}${name}`;
}

function checkName(kind: "oci" | "oci-archive" | "docker-archive", name: string, text: string) {
  if (name === "") return undefined;
  if (kind === "docker-archive") return withLatest(name);
  // https://github.com/opencontainers/image-spec/blob/main/annotations.md (org.opencontainers.image.ref.name)
  if (/^[A-Za-z0-9]+([-._:@+/]+[A-Za-z0-9]+|--[A-Za-z0-9]+)*$/.test(name)) return name;
  throw new BoughError(`${JSON.stringify(text)}: ${JSON.stringify(name)} is not a valid image name`, {
    kind: "usage",
  });
}

function invalid(text: string): BoughError {
  return new BoughError(`invalid destination ${JSON.stringify(text)}`, {
    kind: "usage",
    hint: "Destinations are oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG], dir:DIR, docker://REFERENCE, rootfs:DIR and tar:FILE; - is standard output in place of FILE.",
  });
}
