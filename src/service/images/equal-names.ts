/** Names that Docker takes for one image of Docker Hub: `alpine` and `docker.io/library/alpine:latest`. Services store tags as written. */

import { isTag } from "../wire/image.ts";
import { parseReference } from "./reference.ts";
import { withLatest } from "./tag.ts";

/**
 * Returns the short name of an image on Docker Hub, or the full one of a short name: `docker.io/library/alpine:3.20` for
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
