import type { HistoryLine } from "../../image/history.ts";
import type { HostFiles, InstanceEntry, InstanceFile } from "./file.ts";
import type { InstanceMount } from "./mount.ts";

/** A `COPY --from` of a request. Part of the extension `copies`, which bough's own engine has. */
export interface ImageCopy {
  /** UUID. */
  image: string;
  /** The words of `COPY --from`, variables replaced: globs, relative to `/`. */
  sources: string[];
  /** Absolute; a slash at the end marks a directory. */
  destination: string;
  /**
   * Numbers of `--chown`: for everything that is copied and all directories made for it. Default: the source's own (made
   * directories: root's).
   */
  uid?: number;
  gid?: number;
  /** `--chmod`, as written: octal or symbolic. */
  chmod?: string;
  /** `--parents`, `--exclude`. */
  parents?: boolean;
  exclude?: string[];
}

/**
 * The network of a command, as in `docker run --network`: the outside (the service chooses how), nothing, or everything that the
 * machine can reach.
 */
export const networkModes = ["default", "none", "host"] as const;
export type NetworkMode = (typeof networkModes)[number];

/** A name in `/etc/hosts`. Part of the extension `extra-hosts`, which bough's own engine has. */
export interface ExtraHost {
  host: string;
  /** IPv4 or IPv6; or `host-gateway`, by which a command reaches the machine that runs it. */
  ip: string;
}

/** True for a name that can be in `/etc/hosts`, where each is a word of a line. */
export function isHostName(text: string): boolean {
  return /^[\w.-]{1,253}$/.test(text);
}

/** The value of `ip` for the machine that runs the command, as in Docker. */
export const hostGateway = "host-gateway";

/** What an instance is asked to do. In the body of `POST /v1/instances` bytes are encoded, see `InstanceBody`. */
export interface InstanceRequest {
  /** An image's UUID or `tag:<name>`. */
  image: string;
  /**
   * May be empty beside `copies` (even an empty list) or `entries`: nothing runs, and the result is the image with its files and
   * copies.
   */
  command: string;
  args?: string[];
  shell: boolean;
  env?: Record<string, string>;
  /** Absolute. The service's own default is `/root`, so it is always sent. */
  cwd: string;
  files?: Record<string, InstanceFile>;
  /** Placed after `files`. Only for a service in this process, which reads them where they are. */
  host_files?: HostFiles;
  /** The image that the client has made of earlier versions of `host_files`, most of which may be the same there. */
  earlier_image?: string;
  /** Entries by absolute path. Only with the extension `entries`. */
  entries?: Record<string, InstanceEntry>;
  /** Copies are made in order, after the files and before the command. Only with the extension `copies`. */
  copies?: ImageCopy[];
  /** Mounts are in place while the command runs, made in order. Only with the extension `mounts`. */
  mounts?: InstanceMount[];
  /** Seconds. */
  timeout?: number;
  /** `false` keeps the result as a new image. */
  disposable: boolean;
  hostname?: string;
  /** `mode` only if the service has the extension `host-network`. */
  networking?: { enabled: boolean } | { mode: NetworkMode };
  /** Makes `/etc/hosts` and `/etc/resolv.conf` read-only. Only with the extension `readonly-network-files`. */
  readonly_network_files?: boolean;
  /** Further lines of `/etc/hosts`. Only with the extension `extra-hosts`. */
  extra_hosts?: readonly ExtraHost[];
  /** `close: false`: more input follows. */
  stdin?: { bytes: Uint8Array; close?: boolean };
  /** The command runs on a terminal of this size. Part of the extension `terminals`, which bough's own engine has. */
  terminal?: TerminalSize;
  /** Bytes of each output stream that are kept. */
  truncate_output_at?: number;
  preserve_env?: boolean;
  /**
   * True to ignore the image's variables and working directory. Part of the extension `configure`, which bough's own engine has.
   */
  ignore_config?: boolean;
  resources_limits?: ResourcesLimits;
  /** History lines of the result that the image lacks, one of them with a layer. Only with the extension `history`. */
  history?: readonly HistoryLine[];
  uid?: number;
  gid?: number;
}

/** The body of `POST /v1/instances`. */
export type InstanceBody = Omit<InstanceRequest, "stdin" | "mounts" | "host_files" | "earlier_image"> & {
  stdin?: { value: string; encoding: string; close?: boolean };
  mounts?: InstanceMount<string>[];
};

/** Characters. */
export interface TerminalSize {
  columns: number;
  rows: number;
}

/** The limits of setrlimit(2) that Docker's `--ulimit` names. Bytes, seconds or numbers, as there. */
export const ulimitNames = [
  ...["core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss"],
  ...["rtprio", "rttime", "sigpending", "stack"],
] as const;
export type UlimitName = (typeof ulimitNames)[number];

/** -1: unlimited. */
export interface Ulimit {
  soft: number;
  hard: number;
}

/** Returns a limit of an `Ulimit` as a number that compares with others: infinite if it is -1. */
export function comparableLimit(limit: number): number {
  return limit === -1 ? Number.POSITIVE_INFINITY : limit;
}

/** The lowest limits that bough's own engine accepts. */
export const minLimits = {
  /** Docker's minimum. */
  max_memory_bytes: 6 * 1024 ** 2,
  /** runc can't start a command with fewer processes. */
  max_processes: 8,
  cpus: 0.01,
} as const;

/** `max_memory_bytes`, `max_processes` and `cpus` are the extension `resource-limits`, which bough's own engine has. */
export interface ResourcesLimits {
  max_layer_bytes?: number;
  max_memory_bytes?: number;
  /** Processes and threads. */
  max_processes?: number;
  /** Processors, such as 1.5. */
  cpus?: number;
  /** The size of `/dev/shm`. Part of the extension `shm-size`. */
  shm_bytes?: number;
  /** Part of the extension `ulimits`. */
  ulimits?: Partial<Record<UlimitName, Ulimit>>;
}
