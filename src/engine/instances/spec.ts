import type { Database } from "bun:sqlite";
import { octalMode } from "../../image/file-mode.ts";
import { type HistoryLine, hasLayer, parseHistory } from "../../image/history.ts";
import { maxTimeout } from "../../programs/helper.ts";
import { HostFiles } from "../../service/wire/file.ts";
import type { ExtraHost, NetworkMode, ResourcesLimits, TerminalSize } from "../../service/wire/instance.ts";
import { type ImageCopySpec, readCopies } from "../copies/copy-spec.ts";
import {
  type PlacedEntry,
  type PlacedUpload,
  readPlacedEntries,
  readPlacedFiles,
} from "../copies/file-spec.ts";
import {
  optionalBoolean,
  optionalFields,
  optionalNumber,
  optionalString,
  type RequestFields,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import type { Layout } from "../layout.ts";
import { type MountRequest, type RequestedMount, readRequestedMounts } from "../mounts/requested-mount.ts";
import { readExtraHosts } from "../network/networks.ts";
import { type ExecSpec, execFields, readExecSpec } from "../processes/exec-spec.ts";
import { hideSecrets } from "../processes/process-events.ts";
import type { Image } from "../records/images.ts";
import { readLimits } from "../sandbox/limits/limits.ts";
import { readTerminal } from "../terminal/terminal-spec.ts";

/** The body of `POST /v1/instances`, checked and with its defaults. */
export interface InstanceSpec extends ExecSpec {
  image: string;
  files: PlacedUpload[];
  /** Files of this machine, of a client in the same process, placed after the files. */
  hostFiles: HostFiles;
  /** An image with earlier versions of the host files. */
  earlier?: string | undefined;
  /** Extension `entries`: directories and links, placed before the files. */
  entries: PlacedEntry[];
  /** Extension `copies`: copies from images, made after the files. */
  copies: ImageCopySpec[];
  /** Extension `mounts`: mounts that exist while the command runs. */
  mounts: RequestedMount[];
  timeoutSeconds: number;
  disposable: boolean;
  hostname: string;
  network: NetworkMode;
  /** Extension `extra-hosts`: further lines of `/etc/hosts`. */
  extraHosts: ExtraHost[];
  /** Extension `readonly-network-files`. */
  hasReadonlyNetworkFiles: boolean;
  preserveEnv: boolean;
  /** Extension `configure`: ignores the image's variables and working directory. */
  ignoresConfig: boolean;
  limits: ResourcesLimits;
  /** Extension `terminals`: the size of the command's terminal. */
  terminal: TerminalSize | undefined;
  /** Extension `history`: the steps that the result has in addition to the image's; exactly one has a layer. */
  history: readonly HistoryLine[];
}

/** A request's body, with the images and files that it refers to. */
export interface ResolvedInstance {
  image: Image;
  spec: InstanceSpec;
  copies: readonly { spec: ImageCopySpec; image: Image }[];
  mounts: readonly MountRequest[];
}

const instanceFields = [
  ...execFields,
  "image",
  "files",
  "entries",
  "copies",
  "mounts",
  "timeout",
  "disposable",
  "hostname",
  "networking",
  "extra_hosts",
  "readonly_network_files",
  "preserve_env",
  "ignore_config",
  "resources_limits",
  "terminal",
  "history",
] as const;

/** Reads a request: the body of `POST /v1/instances`, or the request of a client in this process, whose bytes are not encoded. */
export async function readInstanceSpec(
  { host_files: hostFiles = HostFiles.none, earlier_image: earlier, ...body }: RequestFields,
  database: Database,
  layout: Layout,
): Promise<InstanceSpec> {
  if (!(hostFiles instanceof HostFiles)) refuse("host_files", "is not a known field");
  if (earlier !== undefined && (typeof earlier !== "string" || hostFiles === HostFiles.none))
    refuse("earlier_image", "is not a known field");
  refuseUnknownFields(body, instanceFields);
  const image = readString(body, "image");
  const exec = readExecSpec(body, { mayBeEmpty: body.copies !== undefined || body.entries !== undefined });
  if (exec.command === "" && Array.isArray(body.mounts) && body.mounts.length > 0)
    refuse("mounts", "must be empty if there is no command");
  const hostname = optionalString(body, "hostname") ?? "linuxkit";
  if (!/^[A-Za-z0-9._-]{1,63}$/.test(hostname))
    refuse("hostname", "must be 1 to 63 letters, digits, dots, hyphens and underscores");
  const timeoutSeconds = optionalNumber(body, "timeout", 1) ?? 600;
  if (timeoutSeconds > maxTimeout) refuse("timeout", `must be at most ${maxTimeout} seconds`);
  return {
    ...exec,
    image,
    files: await readPlacedFiles(optionalFields(body, "files") ?? {}, database, layout),
    hostFiles,
    earlier,
    entries: readPlacedEntries(optionalFields(body, "entries") ?? {}),
    copies: readCopies(body.copies),
    mounts: await readRequestedMounts(body.mounts, { database, layout }),
    timeoutSeconds,
    disposable: optionalBoolean(body, "disposable") ?? false,
    hostname,
    network: readNetwork(optionalFields(body, "networking") ?? {}),
    extraHosts: readExtraHosts(body),
    hasReadonlyNetworkFiles: optionalBoolean(body, "readonly_network_files") ?? false,
    preserveEnv: optionalBoolean(body, "preserve_env") ?? false,
    ignoresConfig: optionalBoolean(body, "ignore_config") ?? false,
    limits: readLimits(body),
    terminal: readTerminal(body, exec),
    history: readHistory(body),
  };
}

function readHistory({ history }: RequestFields): readonly HistoryLine[] {
  const lines = history == null ? [{ comment: "bough run" }] : parseHistory(history, refuseHistory);
  if (lines?.filter(hasLayer).length === 1) return lines;
  return refuse("history", "must have exactly one entry with a layer");
}

/** Throws with a problem that begins with the field's name. */
function refuseHistory(problem: string): never {
  throw new RequestError(400, problem);
}

/** `{"enabled": false}` is part of the API; `mode`, as in `docker run --network`, is an extension: see `GET /v1/whoami`. */
function readNetwork(fields: RequestFields): NetworkMode {
  refuseUnknownFields(fields, ["enabled", "mode"], "networking");
  const mode = optionalString(fields, "mode") ?? "default";
  if (mode !== "default" && mode !== "none" && mode !== "host")
    refuse("networking.mode", "must be default, none or host");
  return optionalBoolean(fields, "enabled") === false ? "none" : mode;
}

/** A command's working directory if neither the request nor the image has one; the service's default. */
const defaultDirectory = "/root";

export function workingDirectoryOf(
  spec: Pick<InstanceSpec, "cwd" | "ignoresConfig">,
  { config }: Image,
): string {
  return spec.cwd ?? (spec.ignoresConfig ? undefined : config.WorkingDir) ?? defaultDirectory;
}

/** Describes the request for the response and the operation's record, without the standard input, which may be long or secret. */
export function describeRequest(spec: InstanceSpec, image: Image): Record<string, unknown> {
  return {
    ...hideSecrets(spec),
    shell: spec.shell,
    image: spec.image,
    cwd: workingDirectoryOf(spec, image),
    uid: spec.uid ?? 0,
    ...(spec.gid === undefined ? {} : { gid: spec.gid }),
    hostname: spec.hostname,
    disposable: spec.disposable,
    preserve_env: spec.preserveEnv,
    networking: { enabled: spec.network !== "none", ...(spec.network === "host" ? { mode: "host" } : {}) },
    ...(spec.extraHosts.length === 0 ? {} : { extra_hosts: spec.extraHosts }),
    ...(spec.hasReadonlyNetworkFiles ? { readonly_network_files: true } : {}),
    resources_limits: spec.limits,
    timeout: spec.timeoutSeconds,
    truncate_output_at: spec.truncateOutputAt,
    ...(spec.terminal === undefined ? {} : { terminal: spec.terminal }),
    files: Object.fromEntries(
      spec.files.map(({ destination, uuid, uid, gid, mode, mtime, attributes, replaces }) => [
        destination,
        {
          uuid,
          uid,
          gid,
          mode: octalMode(mode),
          ...(mtime === undefined ? {} : { mtime }),
          ...(attributes === undefined ? {} : { attributes }),
          ...(replaces === undefined ? {} : { replaces }),
        },
      ]),
    ),
    ...(spec.entries.length === 0 ? {} : { entries: Object.fromEntries(spec.entries.map(describeEntry)) }),
    ...(spec.copies.length === 0 ? {} : { copies: spec.copies.map(({ request }) => request) }),
    ...(spec.mounts.length === 0 ? {} : { mounts: spec.mounts.map(({ request }) => request) }),
    ...(spec.earlier === undefined ? {} : { earlier_image: spec.earlier }),
  };
}

function describeEntry({ path, ...entry }: PlacedEntry): [string, Record<string, unknown>] {
  if (entry.type === "symlink" || entry.mode === undefined) return [path, entry];
  return [path, { ...entry, mode: octalMode(entry.mode) }];
}
