import type { Database } from "bun:sqlite";
import { createPace } from "../../pace.ts";
import type { ExtendedAttributes, HostFile, SpecialKind } from "../../service/wire/file.ts";
import {
  asFields,
  optionalBoolean,
  type RequestFields,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import type { Layout } from "../layout.ts";
import { optionalId, refuseNul } from "../processes/exec-spec.ts";
import { filePath, findFile } from "../records/files.ts";
import { deviceNumber } from "../system/xattrs.ts";

/** A file that is copied into an image, with the path of its bytes on this machine. */
export type PlacedFile = HostFile & { path: string };

/** A placed file whose bytes were uploaded. */
export type PlacedUpload = PlacedFile & { uuid: string };

/** Yields files of this machine one by one, since a large context has many. A stored file that is gone is treated as damaged, and sent again. */
export function* placedFiles(files: Iterable<HostFile>, layout: Layout): Generator<PlacedFile, undefined> {
  for (const file of files) yield "path" in file ? file : { ...file, path: filePath(layout, file.sha256) };
}

/** Reads the field `files` of a request: the files that are copied before its command starts. */
export async function readPlacedFiles(
  fields: RequestFields,
  database: Database,
  layout: Layout,
): Promise<PlacedUpload[]> {
  // A large context has very many files, and each needs a disk access.
  const pace = createPace(undefined);
  const files: PlacedUpload[] = [];
  for (const [destination, value] of Object.entries(fields)) {
    files.push(readFile(destination, value, database, layout));
    await pace.step();
  }
  return files;
}

function readFile(destination: string, value: unknown, database: Database, layout: Layout): PlacedUpload {
  const name = `files[${JSON.stringify(destination)}]`;
  requireFilePath(destination, name);
  const file = asFields(value, name);
  refuseUnknownFields(file, ["uuid", "uid", "gid", "mode", "mtime", "links", "attributes", "replaces"], name);
  const uuid = readString(file, "uuid");
  const stored = findFile(database, layout, "uuid", uuid);
  if (stored === undefined) throw new RequestError(404, `there is no file ${uuid} (for ${destination})`);
  return {
    destination,
    uuid,
    path: filePath(layout, stored.sha256),
    sha256: stored.sha256,
    size: stored.size,
    uid: optionalId(file, "uid") ?? 0,
    gid: optionalId(file, "gid") ?? 0,
    mode: readMode(file.mode ?? "0644", name),
    mtime: undefined,
    ...readAttributeFields(file, name),
    links: file.links == null ? none : readLinks(file.links, name),
  };
}

function requireFilePath(path: string, name: string): void {
  const last = path.split("/").at(-1);
  if (!path.startsWith("/") || last === "" || last === "." || last === "..") {
    refuse(name, "must be the absolute path of a file");
  }
  refuseNul(name, [path]);
}

const none: readonly string[] = [];

/** Reads the paths of the extension `hard-links`. */
function readLinks(value: unknown, name: string): readonly string[] {
  if (!Array.isArray(value)) refuse(`${name}.links`, "must be an array of paths");
  return value.map((path: unknown, index) => {
    const place = `${name}.links[${index}]`;
    if (typeof path !== "string") refuse(place, "must be the absolute path of a file");
    requireFilePath(path, place);
    return path;
  });
}

/** The latest time that file systems can store is in the 25th century. */
const maxTimeSeconds = 2 ** 34;

/** Reads a time of the extension `file-times`: seconds since the epoch, possibly with a fraction. */
function readTime(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && Math.abs(value) < maxTimeSeconds) return value;
  refuse(`${name}.mtime`, "must be a number of seconds since 1970");
}

/** Reads a mode: octal text or a number; `"0755"` and 493 are the same. */
export function readMode(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0o177777)
    return value & 0o7777;
  if (typeof value === "string" && /^[0-7]{1,6}$/.test(value)) return Number.parseInt(value, 8) & 0o7777;
  refuse(`${name}.mode`, `must be octal text such as "0755" or a number, not ${JSON.stringify(value)}`);
}

/** The extension `entry-attributes`: attributes that a request may set for each entry and file. */
export interface PlacedAttributes {
  /** Seconds since the epoch; `undefined` for the time at which the entry is made. */
  mtime?: number | undefined;
  attributes?: ExtendedAttributes | undefined;
  /** True if the entry replaces an existing one, unless both are directories. */
  replaces?: true | undefined;
}

function readAttributeFields(fields: RequestFields, name: string): PlacedAttributes {
  const mtime = readTime(fields.mtime ?? undefined, name);
  return {
    ...(mtime !== undefined && { mtime }),
    ...(fields.attributes != null && { attributes: readAttributes(fields.attributes, `${name}.attributes`) }),
    ...(optionalBoolean(fields, "replaces") === true && { replaces: true }),
  };
}

function readAttributes(value: unknown, name: string): ExtendedAttributes {
  return Object.fromEntries(
    Object.entries(asFields(value, name)).map(([attribute, text]): [string, string] => {
      if (typeof text !== "string") refuse(`${name}[${JSON.stringify(attribute)}]`, "must be base64");
      return [attribute, text];
    }),
  );
}

/** An entry that is made before the files are copied; validated. */
export type PlacedEntry = { path: string; uid: number; gid: number } & PlacedAttributes &
  (
    | {
        type: "directory";
        /** `undefined` leaves the owner and mode of an existing directory unchanged. */
        mode: number | undefined;
      }
    | { type: "symlink"; target: string }
    | ({ type: "special"; mode: number } & SpecialKind)
  );

/** Reads the field `entries` of a request. Sorts by path, so that a directory comes before its contents. */
export function readPlacedEntries(fields: RequestFields): PlacedEntry[] {
  return Object.entries(fields)
    .map(([path, value]) => readEntry(path, value))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

function readEntry(path: string, value: unknown): PlacedEntry {
  const name = `entries[${JSON.stringify(path)}]`;
  const last = path.split("/").at(-1);
  if (!path.startsWith("/") || last === "" || last === "." || last === "..")
    refuse(name, "must be an absolute path without a trailing slash");
  refuseNul(name, [path]);
  const fields = asFields(value, name);
  const known = ["type", "uid", "gid", "mode", "target", "mtime", "attributes", "replaces"];
  refuseUnknownFields(fields, [...known, "kind", "major", "minor"], name);
  const owned = {
    path,
    uid: optionalId(fields, "uid") ?? 0,
    gid: optionalId(fields, "gid") ?? 0,
    ...readAttributeFields(fields, name),
  };
  switch (fields.type) {
    case "directory": {
      const mode = fields.mode === undefined ? undefined : readMode(fields.mode, name);
      return { ...owned, type: "directory", mode };
    }
    case "symlink": {
      const target = readString(fields, "target");
      refuseNul(name, [target]);
      return { ...owned, type: "symlink", target };
    }
    case "special":
      return { ...owned, type: "special", mode: readMode(fields.mode, name), ...readKind(fields, name) };
    default:
      refuse(`${name}.type`, "must be directory, symlink or special");
  }
}

function readKind(fields: RequestFields, name: string): SpecialKind {
  const { kind, major, minor } = fields;
  if (kind === "pipe") return { kind };
  if (kind !== "character-device" && kind !== "block-device")
    refuse(`${name}.kind`, "must be pipe, character-device or block-device");
  if (typeof major !== "number" || typeof minor !== "number" || deviceNumber(major, minor) === undefined)
    refuse(`${name}.major`, "and minor must be the numbers of a device");
  // A character device 0:0 is overlayfs's whiteout.
  if (kind === "character-device" && major === 0 && minor === 0)
    refuse(`${name}.major`, "and minor must not both be 0");
  return { kind, major, minor };
}
