import type { CacheContents } from "../../service/wire/mount.ts";

/** A cache mount as far as its contents depend on it. `mode`: octal; default: 0755. */
interface CacheIdentity {
  id: string;
  uid?: number | undefined;
  gid?: number | undefined;
  mode?: string | undefined;
}

/** The contents of cache mounts that are kept outside the service. */
export interface CarriedCaches {
  /** Notes that a command uses a cache. Returns where its contents are kept, for a service that has no such cache. */
  use(cache: CacheIdentity): CacheContents | undefined;
}
