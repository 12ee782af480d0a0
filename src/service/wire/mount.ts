import type { Secret } from "../../secret.ts";
import { sha256Of } from "../../sha256.ts";
import type { HostFiles, InstanceEntry, InstanceFile } from "./file.ts";

/**
 * A mount that exists while a command runs, and is not in its result. Part of the extension `mounts`, which bough's own engine
 * has. `Value`: a secret's, which is base64 in a request.
 */
export type InstanceMount<Value = Secret> = {
  /** Absolute. */
  target: string;
} & (
  | {
      type: "bind";
      /** UUID. */
      image: string;
      /** A directory or file of the image; links are followed within the image. */
      source: string;
      /** `false`: writes are discarded. */
      readonly: boolean;
    }
  | {
      type: "bind";
      /** Files by path relative to the target; a single file has the path "" and is the target itself. */
      files: Record<string, InstanceFile>;
      /** A directory with the path "" gives the target's own owner and mode. */
      entries?: Record<string, InstanceEntry>;
      readonly: boolean;
    }
  | {
      type: "bind";
      /** The mount's files, whose paths begin at the target. Only for a service in this process. */
      host_files: HostFiles;
      entries?: Record<string, InstanceEntry>;
      readonly: boolean;
    }
  | {
      type: "cache";
      /** Caches of one id differ by image and source; without an image, by owner and mode. */
      id: string;
      sharing: "shared" | "private" | "locked";
      readonly?: boolean;
      /** Octal mode of a new cache's directory. Default: 0755. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** UUID of the image whose directory `source` a new cache starts with. */
      image?: string;
      /** A directory of that image; without an image, the directory of the cache that is mounted. */
      source?: string;
      /**
       * Only caches that commands with the same text here have made count: those of a build with `--no-cache` count for each other. Also
       * needs the extension `cache-generations`.
       */
      generation?: string;
      /** Caches of one id also differ by this text. Also needs the extension `cache-generations`. */
      realm?: string;
      /** What a new cache without an image starts with. Also needs the extension `cache-archives`. */
      contents?: CacheContents;
    }
  | {
      type: "tmpfs";
      /** Bytes. */
      size?: number;
    }
  | {
      type: "secret";
      /** Kept only in memory. */
      value: Value;
      /** Octal. Default: 0400. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** True for a file at the target. Default: true. */
      isFile?: boolean;
      /** Name of a variable of the command that also gets the secret. */
      env?: string;
    }
  | {
      /** A file or directory of this machine itself. Also needs the extension `host-mounts`. */
      type: "host";
      source: string;
      readonly: boolean;
    }
  | {
      /** A socket that leads to an SSH agent. Also needs the extension `ssh-mounts`. */
      type: "ssh";
      /** The path of the agent's socket on this machine. */
      agent: string;
      /** Octal. Default: 0600. */
      mode?: string;
      uid?: number;
      gid?: number;
    }
);

/** The archive of a cache in a store: `docker://HOST/NAME` or `dir:/PATH`. It has the format of a layer. */
export interface CacheContents {
  source: string;
  digest: string;
  size: number;
}

/** Names the caches of one id, owner, mode and realm, the same on every machine. */
export function cacheKeyOf({
  id,
  uid,
  gid,
  mode,
  realm,
}: {
  id: string;
  uid: number;
  gid: number;
  mode: number;
  realm?: string | undefined;
}): string {
  return sha256Of(JSON.stringify([id, uid, gid, mode, ...(realm === undefined ? [] : [realm])]));
}
