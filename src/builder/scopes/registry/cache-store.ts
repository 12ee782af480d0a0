import type { Compression } from "../../../image/compression.ts";
import { isGithub } from "../../../registry/github/scope-address.ts";

/** A cache outside a service, as an option names it. */
export interface CacheStore {
  /** The name that messages show. */
  label: string;
  /** See `openBlobStore`. */
  address: string;
  tag: string;
  /** The name that its index has, and that is signed with it. */
  name: string;
}

const directoryPrefix = "dir:";

export function isDirectory(address: string): boolean {
  return address.startsWith(directoryPrefix);
}

/** Returns true for a cache that only this process can read: a directory of this machine, or one that needs a token of this job. */
export function isLocal(address: string): boolean {
  return isDirectory(address) || isGithub(address);
}

/** Returns the path in the address of a directory. */
export function directoryIn(address: string): string {
  return address.slice(directoryPrefix.length);
}

/** A cache to write. */
export interface CacheTarget extends CacheStore {
  /** `min`: the layers of the result are sent; `max`: those of all stages. */
  mode: "min" | "max";
  compression: Compression;
  /** The size of all layers together; `undefined`: unlimited. */
  keepBytes: number | undefined;
  /** The cache mounts whose contents are written. */
  mounts: ChosenMounts | undefined;
}

/** `ids`: of cache mounts; undefined for all. `maxBytes`: the size limit of each archive, compressed. */
export interface ChosenMounts {
  ids: readonly string[] | undefined;
  maxBytes: number;
}
