/**
 * References to images, as `FROM` and `bough images import` accept them: names of the service's own images, and addresses to
 * import from if the service has no image of that name.
 */
import { type BoughError, usageError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { colonAfterPath } from "../../paths/local-path.ts";
import type { Capabilities } from "../service.ts";
import {
  isDockerName,
  isRegistryHost,
  isRepositoryName,
  isServiceTag,
  isTag,
  isTagName,
  splitHost,
} from "../wire/image.ts";

type ImageReference =
  /** An image of the service by its id. */
  | { kind: "uuid"; uuid: string }
  /** `tag:<name>`: an image of the service; there is nothing to import. */
  | { kind: "tag"; tag: string }
  | RegistryReference
  | LocalReference;

/** Something to import from a registry. */
export interface RegistryReference {
  kind: "registry";
  url: string;
  /** `docker://HOST/NAME` */
  address: string;
  /** Tag or digest there. */
  reference: string;
  /** Names it on the service afterwards; `undefined` for a digest. */
  tag: string | undefined;
  digest: string | undefined;
}

/** A directory or an archive on this machine, which the embedded engine imports. */
export interface LocalReference {
  kind: "local";
  url: string;
  tag: string | undefined;
  /** `oci`, `oci-archive`, `docker-archive` or `dir`. */
  transport: string;
  path: string;
  /** The image in it, after a colon; empty if none is named. */
  suffix: string;
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Local transports of skopeo, which a path must follow, so that an image named `oci` or `dir` keeps its name. */
const pathTransport = /^(oci|oci-archive|docker-archive|dir):(?=[/.]|[A-Za-z]:\\)(.*)$/s;
/** Transports that can't be imported from: stores of other programs, and files that another program would have to read. */
const refusedTransport = /^((?:sif|tarball):(?=[/.])|(?:docker-daemon|containers-storage|ostree):(?=.))/;

/** Throws a BoughError if `text` is not a reference. */
export function parseReference(text: string): ImageReference {
  if (text === "" || /[\s\u0000-\u001f\u007f]/.test(text))
    throw invalid(text, "it is empty or contains a space or control character");
  if (isUuid(text)) return { kind: "uuid", uuid: text.toLowerCase() };
  if (text.startsWith("tag:")) return { kind: "tag", tag: text.slice("tag:".length) };
  if (text.startsWith("docker://")) {
    const found = parseDockerReference(text.slice("docker://".length), text);
    const familiar = found.address.replace(/^docker:\/\/(docker\.io\/(library\/)?)?/, "");
    const tag = found.digest === undefined ? tagOrNone(`${familiar}:${found.reference}`) : undefined;
    return { kind: "registry", ...found, tag };
  }
  const [, transport, rest] = pathTransport.exec(text) ?? [];
  if (transport !== undefined && rest !== undefined) return parseLocalReference(text, transport, rest);
  requireTransport(text);
  const found = parseDockerReference(text, text);
  const tag = found.digest === undefined ? tagOrNone(withLatest(text)) : undefined;
  return { kind: "registry", ...found, tag };
}

/** Throws if an image can't be imported from the place that `text` names. */
export function requireTransport(text: string): void {
  const refused = refusedTransport.exec(text)?.[0];
  if (refused === undefined) return;
  throw usageError(
    `not an image reference: ${JSON.stringify(text)}: importing from ${refused} is not supported`,
    "Push it to a registry, or save it as docker-archive:/path, oci-archive:/path or oci:/path.",
  );
}

export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

/** Compares the ids of two images. Some services write a UUID in lower case at one time, in upper case at another. */
export function isSameImage(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** True if the id begins with these digits. A UUID's may be written without its hyphens, as short ids are. */
export function startsAlike(id: string, digits: string): boolean {
  const plain = (text: string) => (isUuid(id) ? text.replaceAll("-", "") : text).toLowerCase();
  return plain(id).startsWith(plain(digits));
}

/** Parses a local reference. A directory in skopeo's own format (`dir`) has one image, so a colon is part of its path. */
function parseLocalReference(url: string, transport: string, rest: string): LocalReference {
  const colon = transport === "dir" ? -1 : colonAfterPath(rest);
  const path = colon === -1 ? rest : rest.slice(0, colon);
  const suffix = colon === -1 ? "" : rest.slice(colon);
  return { kind: "local", url, tag: tagOfPath(transport, path, suffix.slice(1)), transport, path, suffix };
}

/**
 * Parses a registry reference. No registry host means Docker Hub, one path segment there means `library/`, no tag means
 * `:latest`. With a digest, the tag is ignored.
 */
function parseDockerReference(text: string, whole: string): Omit<RegistryReference, "kind" | "tag"> {
  const parts = /^([^@]+?)(?::([^:/@]+))?(?:@(.+))?$/s.exec(text);
  if (parts === null) throw invalid(whole, "the repository is missing");
  const [, name = "", tag = "latest", digest] = parts;
  const { host: written, repository: rest } = splitHost(name);
  const host = written === undefined || written === "index.docker.io" ? "docker.io" : written.toLowerCase();
  const repository = host === "docker.io" && !rest.includes("/") ? `library/${rest}` : rest;
  if (!isRegistryHost(host)) throw invalid(whole, `${written} is not a valid registry host`);
  if (!isRepositoryName(repository)) {
    const lower = /[A-Z]/.test(repository) ? ": repository name must be lowercase" : "";
    throw invalid(whole, `${rest === "" ? "the repository" : rest} is not a valid repository name${lower}`);
  }
  if (!isTagName(tag)) throw invalid(whole, `${tag} is not a valid tag`);
  if (digest !== undefined && !isDigest(digest)) {
    throw invalid(whole, `${digest} is not a valid digest (sha256: and 64 hexadecimal digits)`);
  }
  const address = `docker://${host}/${repository}`;
  return digest === undefined
    ? { url: `${address}:${tag}`, address, reference: tag, digest }
    : { url: `${address}@${digest}`, address, reference: digest, digest };
}

/** Returns the tag for a local image. `oci:/path/to/base:1.0` gets `base:1.0`; a name in an archive is a complete reference. */
function tagOfPath(transport: string, path: string, inside: string): string | undefined {
  if (transport === "docker-archive" && inside !== "") return tagOrNone(withLatest(inside));
  const name = (path.split("/").findLast((segment) => segment !== "") ?? "")
    .replace(/\.(tar|tgz|tar\.\w+)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-");
  return tagOrNone(
    inside === "" ? `${name}:latest` : /[/:]/.test(inside) ? withLatest(inside) : `${name}:${inside}`,
  );
}

function tagOrNone(tag: string): string | undefined {
  return isTag(tag) ? tag : undefined;
}

function invalid(text: string, reason: string): BoughError {
  const isPath = /^(\.{1,2}|~)\/|^\/.*\/|\.(tar(\.\w+)?|tgz)$|^(oci|oci-archive|docker-archive|dir):/.test(
    text,
  );
  return usageError(
    `not an image reference: ${JSON.stringify(text)}: ${reason}`,
    isPath
      ? "Give a local image as KIND:PATH, with a path that begins with / or ./: docker-archive:/path, oci-archive:/path or oci:./path."
      : "Give a name like alpine:3.20 or registry.example/team/app:1.0, a digest (name@sha256:...), an image's UUID, or tag:<name>.",
  );
}

/**
 * Docker takes `alpine` and `docker.io/library/alpine:latest` for one image, but services store tags as written. Returns the short name of an image on Docker Hub, or the full one of a short name: `docker.io/library/alpine:3.20` for
 * `alpine:3.20`, and the reverse. `undefined` for names of other registries, and for `tag:NAME`, an id, a digest or an address,
 * each of which means exactly one image.
 */
export function otherName(name: string): string | undefined {
  const address = hubAddress(name);
  if (address === undefined) return undefined;
  const full = address.slice("docker://".length);
  const short = full.replace(/^docker\.io\/(library\/(?=[^/]+$))?/, "");
  // A repository such as `docker.io/a.b/c` has no short name: `a.b` would be the host of another registry.
  const isShort = withLatest(name) === short || hubAddress(short) !== address;
  const other = isShort ? full : short;
  return other === withLatest(name) ? undefined : other;
}

/** True if two names are the same to Docker, written differently or not. */
export function areEqualNames(one: string, other: string): boolean {
  const address = hubAddress(one);
  return one === other || (address !== undefined && address === hubAddress(other));
}

/** Returns the address of an image on Docker Hub; `undefined` for any other reference. */
function hubAddress(name: string): string | undefined {
  if (!isTag(name)) return undefined;
  try {
    const parsed = parseReference(name);
    return parsed.kind === "registry" && parsed.url.startsWith("docker://docker.io/")
      ? parsed.url
      : undefined;
  } catch {
    // Some tags of the service are not valid in a registry.
    return undefined;
  }
}

/** Appends `:latest` to a name without a tag. A colon before a slash belongs to a registry's port. */
export function withLatest(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1).includes(":") ? name : `${name}:latest`;
}

/** Checks the value of `--tag`, and appends `:latest` if it has no tag. Throws a BoughError of kind `usage`. */
export function parseTag(text: string): string {
  const tag = withLatest(text);
  if (isDockerName(tag)) return tag;
  throw usageError(
    `not a tag: ${JSON.stringify(text)}: ${tagFault(text, tag)}`,
    "A tag is [HOST[:PORT]/]NAME[:TAG]: NAME of a-z and 0-9, with . _ - / between them, TAG of letters, digits, _ . and -.",
  );
}

/** Returns false if the service may refuse the tag. Then an import is better off without one. */
export async function takesTag(
  tag: string,
  { extensions }: Pick<Capabilities, "extensions">,
): Promise<boolean> {
  return isServiceTag(tag) || (await extensions()).has("docker-tags");
}

function tagFault(text: string, tag: string): string {
  if (text === "") return "it is empty";
  const strange = /[^\w:/.-]/u.exec(text)?.[0];
  if (strange !== undefined) return `${JSON.stringify(strange)} is not allowed`;
  const colon = tag.lastIndexOf(":");
  const [name, version] = [tag.slice(0, colon), tag.slice(colon + 1)];
  const { host, repository } = splitHost(name);
  if (/[A-Z]/.test(repository) && isDockerName(`${name.toLowerCase()}:${version}`))
    return `repository name must be lowercase; did you mean ${name.toLowerCase()}:${version}?`;
  if (host !== undefined && !isRegistryHost(host)) return `${host} is not a valid registry host`;
  if (name.length > 255) return `its name has ${name.length} characters, at most 255 are allowed`;
  if (!isRepositoryName(repository)) return `${JSON.stringify(repository)} is not a valid repository name`;
  return version.length > 128
    ? `the part after the colon has ${version.length} characters, at most 128 are allowed`
    : `${JSON.stringify(version)} is not valid after the colon`;
}
