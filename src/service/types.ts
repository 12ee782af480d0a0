/**
 * The service's wire types (version 1 of its API), as far as bough uses them. Shared with `engine/`, which answers
 * the same calls. A client reads them from `unknown` and checks; only what is listed as required can be relied on.
 */
import type { ImageConfig } from "../image/config.ts";
import type { HistoryLine } from "../image/history.ts";

export const operationStatuses = [
  "PENDING",
  "ASSIGNED",
  "EXECUTING",
  "SUCCESS",
  "FAILED",
  "CANCELLED",
] as const;
export type OperationStatus = (typeof operationStatuses)[number];
export type OperationKind = "instance" | "image_import";

export function isTerminal(status: OperationStatus): boolean {
  return status === "SUCCESS" || status === "FAILED" || status === "CANCELLED";
}

export const activeStatuses = operationStatuses.filter((status) => !isTerminal(status));

export const maxTagLength = 256;

/** Tags of the service: `a-z 0-9 _ -` with `: / .` as separators. */
export function isTag(text: string): boolean {
  return text.length <= maxTagLength && /^[a-z0-9_-]+([:/.][a-z0-9_-]+)*$/.test(text);
}

/** Bytes on the wire: `ascii` (or `utf-8`) is the text itself, `base64` arbitrary bytes. */
export interface WireBytes {
  value: string;
  encoding: string;
  truncated?: boolean;
}

/** A file put in place before an instance's command starts. `mode` is octal text, such as `0644`. */
export interface InstanceFile {
  uuid: string;
  uid: number;
  gid: number;
  mode: string;
  /** Seconds since the epoch, with a fraction or without. Only where the service announces the extension `file-times`. */
  mtime?: number;
}

/**
 * A file put in place before an instance's command starts: one of this machine, which must still be what was hashed, or one that
 * the service has. Part of the extension `lent-files`, which bough's own engine has for a client in the same process.
 */
export type LentFile = {
  /** Absolute, in the image. */
  destination: string;
  sha256: string;
  size: number;
  uid: number;
  gid: number;
  mode: number;
  /** Seconds since the epoch. */
  mtime: number | undefined;
} & ({ path: string } | { uuid: string });

export type LendFiles = (files: Iterable<LentFile>) => Loan;

/** Files that a request can name until the loan ends. */
export interface Loan {
  readonly id: string;
  end(): void;
}

/**
 * A directory or link put in place before the files. Part of the extension `entries`, which bough's own engine has. Without a
 * `mode` a directory that is there stays as it is. What is above it is made, too, as for files.
 */
export type InstanceEntry = { uid: number; gid: number } & (
  | { type: "directory"; mode?: string }
  | { type: "symlink"; target: string }
);

/** One layer of an image. Part of the extension `layers`, which bough's own engine has. */
export interface ImageLayer {
  /** Names this content for as long as the service has it, and never another one. */
  id: string;
  created_at: string;
  /** Otherwise bough has made it. */
  is_imported: boolean;
  /** Bytes on disk, of a layer that bough has made, where that was asked for. Part of the extension `layer-sizes`. */
  size?: number;
  /** What it was imported as: then its bytes come as they were, compressed or not. */
  blob?: { media_type: string; digest: string; size: number; diff_id: string };
}

/** Files, directories not counted, and the bytes of their contents: of a file with several names once. */
export interface ChangedAmount {
  files: number;
  bytes: number;
}

/** What a layer does to those below it. Part of the extension `changes`, which bough's own engine has. */
export interface ImageLayerChanges {
  /** Names this content for as long as the service has it, and never another one. */
  id: string;
  created_at: string;
  /** Otherwise bough has made it. */
  is_imported: boolean;
  added: ChangedAmount;
  /** Bytes of what stands in place of the old. */
  changed: ChangedAmount;
  /** Of the layers below. */
  deleted: ChangedAmount;
  /** Of this layer's own: what later ones have changed or deleted. */
  hidden: ChangedAmount;
}

/** What a layer does to one path. */
export interface LayerChange {
  kind: "added" | "changed" | "deleted";
  /** Absolute. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Permission bits; of what is deleted, those that it had. */
  mode: number;
  /** Bytes in the layer. */
  size: number;
  /** What of the layers below it takes out of sight. */
  hidden: ChangedAmount;
}

/** What `COPY --from` puts in place. Part of the extension `copies`, which bough's own engine has. */
export interface ImageCopy {
  /** UUID. */
  image: string;
  /** As COPY --from has them, variables replaced: globs, counted from `/`. */
  sources: string[];
  /** Absolute; a slash at the end says that it is a directory. */
  destination: string;
  /**
   * `--chown`, as numbers: for all that is copied and all directories that are made for it. Without: the source's own (made
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
      /** By path relative to the target; a lone file has the path "" and is the target itself. */
      files: Record<string, InstanceFile>;
      /** A directory with the path "" gives the target's own owner and mode. */
      entries?: Record<string, InstanceEntry>;
      readonly: boolean;
    }
  | {
      type: "cache";
      /** Where image, owner or mode differ, one id names several. */
      id: string;
      sharing: "shared" | "private" | "locked";
      readonly?: boolean;
      /** Octal, of a new one's directory. Default: 0755. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** A UUID: a new one begins with the image's directory `source`. */
      image?: string;
      /** Without an image: the directory of the cache that is mounted. */
      source?: string;
    }
  | {
      type: "tmpfs";
      /** Bytes. */
      size?: number;
    }
  | {
      type: "secret";
      /** Base64. Kept in memory alone. */
      value: string;
      /** Octal. Default: 0400. */
      mode?: string;
      uid?: number;
      gid?: number;
      /** Whether it is a file at the target: yes if not said. */
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

/** What a command can reach, as in `docker run --network`: the outside (the service's choice how), nothing, or all that the machine can. */
export const networkModes = ["default", "none", "host"] as const;
export type NetworkMode = (typeof networkModes)[number];

/** The body of `POST /v1/instances`. */
export interface InstanceRequest {
  /** An image's UUID or `tag:<name>`. */
  image: string;
  /** Beside `copies`, be it an empty list, it may be empty: nothing runs, and the result is the image with its files and copies. */
  command: string;
  args?: string[];
  shell: boolean;
  env?: Record<string, string>;
  /** Absolute. The service's own default is `/root`, so it is always sent. */
  cwd: string;
  files?: Record<string, InstanceFile>;
  /** Names what the client has lent; placed after `files`. Only with the extension `lent-files`. */
  lent_files?: string;
  /** By absolute path. Only with the extension `entries`. */
  entries?: Record<string, InstanceEntry>;
  /** Done in their order, after the files and before the command. Only with the extension `copies`. */
  copies?: ImageCopy[];
  /** In place while the command runs, one after the other. Only with the extension `mounts`. */
  mounts?: InstanceMount[];
  /** Seconds. */
  timeout?: number;
  /** `false` keeps the result as a new image. */
  disposable: boolean;
  hostname?: string;
  /** `mode` only where the service announces the extension `host-network`. */
  networking?: { enabled: boolean } | { mode: NetworkMode };
  /** `close: false`: more is to come. */
  stdin?: { value: string; encoding: string; close?: boolean };
  /** The command runs on a terminal of this size. Part of the extension `terminals`, which bough's own engine has. */
  terminal?: TerminalSize;
  /** Bytes of each output stream that are kept. */
  truncate_output_at?: number;
  preserve_env?: boolean;
  /** Without the image's variables and working directory. Part of the extension `configure`, which bough's own engine has. */
  ignore_config?: boolean;
  resources_limits?: ResourcesLimits;
  /** The lines of the result's history that the image has not, one of them with a layer. Only with the extension `history`. */
  history?: readonly HistoryLine[];
  uid?: number;
  gid?: number;
}

/** In characters. */
export interface TerminalSize {
  columns: number;
  rows: number;
}

/** The last three are the extension `resource-limits`, which bough's own engine has. */
export interface ResourcesLimits {
  max_layer_bytes?: number;
  max_memory_bytes?: number;
  /** Processes and threads. */
  max_processes?: number;
  /** So many processors' time, such as 1.5. */
  cpus?: number;
}

/** A limit that a command ran into. Part of the extension `resource-limits`. */
export interface LimitHit {
  limit: Exclude<keyof ResourcesLimits, "cpus">;
  value: number;
  /** The whole command was ended for it. */
  killed: boolean;
}

interface ProcessState {
  exit_code: number;
  pid?: number;
  signal?: number;
  timed_out?: boolean;
  stopped?: boolean;
  continued?: boolean;
}

/** As getrusage(2) has it: times in seconds, `max_rss` in KiB. */
export interface ProcessResources {
  elapsed_time?: number;
  user_cpu_time?: number;
  system_cpu_time?: number;
  max_rss?: number;
  shared_memory?: number;
  unshared_memory?: number;
  swaps?: number;
  page_faults?: number;
  page_faults_io?: number;
  voluntary_switches?: number;
  involuntary_switches?: number;
  block_input?: number;
  block_output?: number;
  signals?: number;
}

export interface InstanceResult {
  state?: ProcessState;
  stdout?: WireBytes;
  stderr?: WireBytes;
  resources?: ProcessResources;
  limits_hit?: LimitHit[];
}

/** The answer of `GET /v1/operations/{uuid}`. */
export interface OperationRecord {
  uuid: string;
  kind: OperationKind;
  status: OperationStatus;
  error: string | null;
  created_at?: string;
  duration?: number | null;
  /** Bytes. */
  image_size?: number | null;
  /** Seconds of processors' time. */
  consumed_cpu?: number | null;
  /** Bytes, at the peak. */
  consumed_memory?: number | null;
  /** The image that the operation started from. */
  image_uuid?: string | null;
  metadata?: { command?: string; image?: string; shell?: boolean; result?: InstanceResult | null } & Record<
    string,
    unknown
  >;
  result_image_uuid?: string | null;
  result?: { image?: string | null; tag?: string | null } | null;
}

export interface ImageRecord {
  uuid: string;
  tag: string | null;
  created_at: string;
  operation_uuid?: string | null;
  /** Bytes on disk of all its layers, where a list is asked for it (`sizes=1`). Part of the extension `image-sizes`. */
  size?: number;
  /**
   * Where the image was asked for by its UUID or tag. Part of the extension `config`, which bough's own engine has. Not `config`:
   * older versions have another shape under that name.
   */
  oci_config?: ImageConfig;
  /** Beside it, part of the extension `history`. */
  oci_author?: string;
  oci_history?: readonly HistoryLine[];
  /**
   * Likewise: platform and configuration's digest, or the UUID of an image that nobody has imported. Part of the extension
   * `identity`, which bough's own engine has.
   */
  identity?: string;
}

export interface FileRecord {
  uuid: string;
  sha256: string;
  size: number;
  created_at?: string;
  updated_at?: string;
}

export interface ImportRequest {
  registry: { url: string; credentials?: { username: string; password: string } };
  tag?: string;
  /** Seconds. */
  timeout?: number;
}

/** One frame of `GET /v1/operations/{uuid}/events`. `spid` 0 is the sandbox itself, 1 the main process. */
export interface OperationEvent {
  id: number;
  ts: string;
  spid: number;
  type: string;
  data: Record<string, unknown>;
}

export interface ErrorBody {
  error: string;
  status: number;
}
