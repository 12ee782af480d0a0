import { normalize } from "node:path";
import { isDigest } from "../../image/digest.ts";
import { directoryMode } from "../../image/file-mode.ts";
import { Secret } from "../../secret.ts";
import { HostFiles } from "../../service/wire/file.ts";
import type { CacheContents } from "../../service/wire/mount.ts";
import {
  type PlacedEntry,
  type PlacedFile,
  readMode,
  readPlacedEntries,
  readPlacedFiles,
} from "../copies/file-spec.ts";
import {
  asFields,
  optionalBoolean,
  optionalFields,
  optionalNumber,
  optionalString,
  type RequestFields,
  readString,
  refuse,
  refuseUnknownFields,
  requireStoreAddress,
} from "../http/fields.ts";
import { optionalId, refuseNul } from "../processes/exec-spec.ts";
import type { Sharing } from "../records/caches.ts";
import type { Image } from "../records/images.ts";
import type { Records } from "../records/records.ts";

/** Owner and mode of an entry. */
interface Access {
  mode: number;
  uid: number;
  gid: number;
}

/** One of a request's mounts, checked and with its defaults. */
export type RequestedMount = {
  target: string;
  /** The request's fields without secret and potentially long ones, for the operation's record. */
  request: RequestFields;
} & (ImageMount | FilesMount | CacheMount | TmpfsMount | SecretMount | SshMount | HostMount);

/** A mount, and the image that its contents come from. */
export interface MountRequest {
  spec: RequestedMount;
  image: Image | undefined;
}

interface ImageMount {
  type: "image";
  image: string;
  source: string;
  readonly: boolean;
}

export interface FilesMount {
  type: "files";
  /** The files, with destinations relative to the target. */
  files: readonly PlacedFile[];
  entries: readonly PlacedEntry[];
  /** Set if the target itself is this file. */
  singleFile: PlacedFile | undefined;
  /** Files of this machine, of a client in the same process, instead of `files` and `singleFile`. */
  hostFiles: HostFiles;
  /** Owner and mode of the target itself. */
  root: Access & { mtime: number | undefined };
  readonly: boolean;
}

export interface CacheMount extends Access {
  type: "cache";
  id: string;
  sharing: Sharing;
  readonly: boolean;
  /** The image whose directory `source` is the initial content of a new cache. */
  image: string | undefined;
  source: string;
  /** Extension `cache-generations`: only a cache that was made for this generation is used. */
  generation: string | undefined;
  /** Extension `cache-generations`: caches of the same id with different realms are different caches. */
  realm: string | undefined;
  /** Extension `cache-archives`: the initial content of a new cache without an image. */
  contents: CacheContents | undefined;
}

interface TmpfsMount {
  type: "tmpfs";
  size: number | undefined;
}

export interface SecretMount extends Access {
  type: "secret";
  value: Secret;
  isFile: boolean;
  env: string | undefined;
}

export interface SshMount extends Access {
  type: "ssh";
  agent: string;
}

/** A file or directory of this machine. */
interface HostMount {
  type: "host";
  source: string;
  readonly: boolean;
}

/** Each mount takes a look at the whole tree, and up to ten system calls. */
const maxMounts = 1000;

/** Reads the field `mounts` of a request. */
export async function readRequestedMounts(value: unknown, records: Records): Promise<RequestedMount[]> {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) refuse("mounts", "must be a list");
  if (value.length > maxMounts) refuse("mounts", `must be at most ${maxMounts}`);
  const mounts: RequestedMount[] = [];
  for (const [index, item] of value.entries()) {
    const name = `mounts[${index}]`;
    mounts.push(await readMount(asFields(item, name), name, records));
  }
  return mounts;
}

async function readMount(fields: RequestFields, name: string, records: Records): Promise<RequestedMount> {
  const target = readPath(fields, "target", name);
  if (normalize(target) === "/") refuse(`${name}.target`, "must not be the root directory");
  const type = readString(fields, "type");
  const known = (...names: string[]) => refuseUnknownFields(fields, ["type", "target", ...names], name);
  const access = (mode: number): Access => ({
    mode: fields.mode === undefined ? mode : readMode(fields.mode, name),
    uid: optionalId(fields, "uid") ?? 0,
    gid: optionalId(fields, "gid") ?? 0,
  });
  switch (type) {
    case "bind": {
      const readonly = optionalBoolean(fields, "readonly") ?? true;
      if (fields.files !== undefined || fields.host_files instanceof HostFiles) {
        known(fields.files === undefined ? "host_files" : "files", "entries", "readonly");
        return {
          target,
          request: { type, target, readonly },
          readonly,
          ...(await readContents(fields, name, records)),
        };
      }
      known("image", "source", "readonly");
      const source = readPath(fields, "source", name);
      return { target, request: fields, type: "image", image: readString(fields, "image"), source, readonly };
    }
    case "cache": {
      known(
        "id",
        "sharing",
        "readonly",
        "mode",
        "uid",
        "gid",
        "image",
        "source",
        "contents",
        "generation",
        "realm",
      );
      const sharing = readString(fields, "sharing");
      if (sharing !== "shared" && sharing !== "private" && sharing !== "locked")
        refuse(`${name}.sharing`, "must be shared, private or locked");
      return {
        ...{ target, request: fields, type, sharing, ...access(directoryMode) },
        id: readString(fields, "id"),
        readonly: optionalBoolean(fields, "readonly") ?? false,
        image: optionalString(fields, "image"),
        source: fields.source === undefined ? "/" : readPath(fields, "source", name),
        generation: optionalString(fields, "generation"),
        realm: optionalString(fields, "realm"),
        contents: readCacheContents(fields, name),
      };
    }
    case "tmpfs":
      known("size");
      return { target, request: fields, type, size: optionalNumber(fields, "size", 1) };
    case "secret": {
      known("value", "mode", "uid", "gid", "isFile", "env");
      const { value: _, ...request } = fields;
      const value = fields.value instanceof Secret ? fields.value : readSecret(fields, name);
      const env = optionalString(fields, "env");
      if (env !== undefined) requireVariable(env, value.reveal(), name);
      const isFile = optionalBoolean(fields, "isFile") ?? true;
      return { target, request, type, ...access(0o400), value, isFile, env };
    }
    case "ssh":
      known("agent", "mode", "uid", "gid");
      return { target, request: fields, type, ...access(0o600), agent: readPath(fields, "agent", name) };
    case "host": {
      known("source", "readonly");
      const readonly = optionalBoolean(fields, "readonly") ?? false;
      return { target, request: fields, type, source: readPath(fields, "source", name), readonly };
    }
    default:
      return refuse(`${name}.type`, "must be bind, cache, tmpfs, secret, ssh or host");
  }
}

/** Reads the files of a mount. Paths are relative to the target, as if it were a root directory. */
async function readContents(
  fields: RequestFields,
  name: string,
  { database, layout }: Records,
): Promise<Omit<FilesMount, "readonly">> {
  const files = optionalFields(fields, "files") ?? {};
  const entries = optionalFields(fields, "entries") ?? {};
  const { "": singleFile, ...others } = files;
  const { "": root, ...below } = entries;
  const rooted = (paths: RequestFields) =>
    Object.fromEntries(Object.entries(paths).map(([path, value]) => [`/${path}`, value]));
  if (singleFile !== undefined && Object.keys(files).length + Object.keys(entries).length > 1)
    refuse(`${name}.files`, 'has the path "", which is allowed only as the only path');
  const [file] =
    singleFile === undefined ? [] : await readPlacedFiles({ "/file": singleFile }, database, layout);
  const [directory] = root === undefined ? [] : readPlacedEntries({ "/root": root });
  if (directory !== undefined && directory.type !== "directory")
    refuse(`${name}.entries`, 'must only have a directory with the path ""');
  return {
    type: "files",
    files: await readPlacedFiles(rooted(others), database, layout),
    entries: readPlacedEntries(rooted(below)),
    singleFile: file,
    hostFiles: fields.host_files instanceof HostFiles ? fields.host_files : HostFiles.none,
    root: {
      uid: directory?.uid ?? 0,
      gid: directory?.gid ?? 0,
      mode: directory?.mode ?? directoryMode,
      mtime: directory?.mtime,
    },
  };
}

function readCacheContents(fields: RequestFields, within: string): CacheContents | undefined {
  const contents = optionalFields(fields, "contents");
  if (contents === undefined) return undefined;
  const name = `${within}.contents`;
  refuseUnknownFields(contents, ["source", "digest", "size"], name);
  const { digest } = contents;
  if (!isDigest(digest)) return refuse(`${name}.digest`, "is not a digest of SHA-256");
  const size = optionalNumber(contents, "size", 0) ?? refuse(`${name}.size`, "is missing");
  const source = readString(contents, "source");
  // A server refuses such mounts altogether.
  requireStoreAddress(source, { isServer: false });
  return { source, digest, size };
}

function readPath(fields: RequestFields, name: string, within: string): string {
  const path = readString(fields, name);
  if (!path.startsWith("/")) refuse(`${within}.${name}`, "must be an absolute path");
  refuseNul(`${within}.${name}`, [path]);
  return path;
}

/** Reads a secret, whose value must never be in a message. */
function readSecret(fields: RequestFields, name: string): Secret {
  const text = readString(fields, "value");
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) refuse(`${name}.value`, "must be base64");
  return new Secret(bytes);
}

function requireVariable(env: string, value: Uint8Array, name: string): void {
  if (env === "" || env.includes("=")) refuse(`${name}.env`, "must be the name of a variable");
  refuseNul(`${name}.env`, [env]);
  const text = Buffer.from(value).toString();
  if (text.includes("\0") || !Buffer.from(text).equals(value))
    refuse(`${name}.value`, "must be UTF-8 text without a NUL character if it is passed as a variable");
}

/** Returns the image that a mount's contents come from: it must not be removed before the operation's end. */
export function imageOf(mount: RequestedMount): string | undefined {
  return mount.type === "image" || mount.type === "cache" ? mount.image : undefined;
}
