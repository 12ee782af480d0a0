import type { InstanceEntry, InstanceFile } from "./file.ts";

/**
 * What a command has in place while it runs, and its result has nothing of. Part of the extension `mounts`, which bough's own
 * engine has.
 */
export type InstanceMount = {
  /** Absolute. */
  target: string;
} & (
  | {
      type: "bind";
      /** UUID. */
      image: string;
      /** A directory or file of the image; its links are followed inside of it. */
      source: string;
      /** `false`: writes are thrown away. */
      readonly: boolean;
    }
  | {
      type: "bind";
      /** Files by path relative to the target; a lone file has the path "" and is the target itself. */
      files: Record<string, InstanceFile>;
      /** A directory with the path "" gives the target's own owner and mode. */
      entries?: Record<string, InstanceEntry>;
      readonly: boolean;
    }
  | {
      type: "cache";
      /** One id names several caches where image, owner or mode differ. */
      id: string;
      sharing: "shared" | "private" | "locked";
      readonly?: boolean;
      /** Octal mode of a new one's directory. Default: 0755. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** UUID of the image whose directory `source` a new one begins with. */
      image?: string;
      /** A directory of that image; without one, the directory of the cache that is mounted. */
      source?: string;
    }
  | {
      type: "tmpfs";
      /** Bytes. */
      size?: number;
    }
  | {
      type: "secret";
      /** Base64, kept in memory alone. */
      value: string;
      /** Octal. Default: 0400. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** Whether it is a file at the target. Default: true. */
      isFile?: boolean;
      /** A variable of the command that has it as well. */
      env?: string;
    }
  | {
      /** A file or directory of this machine itself. Only where the service announces the extension `host-mounts`, too. */
      type: "host";
      source: string;
      readonly: boolean;
    }
  | {
      /** A socket that leads to an SSH agent. Only where the service announces the extension `ssh-mounts`, too. */
      type: "ssh";
      /** The path of the agent's socket on this machine. */
      agent: string;
      /** Octal. Default: 0600. */
      mode?: string;
      uid?: number;
      gid?: number;
    }
);
