import type { ChosenMounts } from "../../builder/scopes/registry/cache-store.ts";
import { type BoughError, usageError } from "../../errors.ts";
import { type Compression, findCompression } from "../../image/compression.ts";
import { parseSize } from "../../terminal/quantity.ts";

/** A cache that a build reads: a scope on the service, or one outside of it. */
export type CacheEntry = OtherCache | OutsideCache;

/** A cache that a build writes. */
export type WrittenCacheEntry = OtherCache | (OutsideCache & { writing: CacheWriting });

type OtherCache =
  | { kind: "scope"; name: string }
  /** One that docker has and bough doesn't. */
  | { kind: "unsupported"; type: string }
  /** An empty value, which stands in place of a variable's. */
  | { kind: "none" };

type OutsideCache =
  | { kind: "registry"; reference: string }
  | { kind: "local"; path: string; tag: string | undefined }
  | { kind: "gha"; fields: GithubFields };

interface CacheWriting {
  mode: "min" | "max";
  compression: Compression;
  /** As it was given: it makes no difference. */
  compressionLevel: string | undefined;
  keepBytes: number | undefined;
  mounts: ChosenMounts | undefined;
}

/** The fields of `type=gha` that say where it is and what opens it. */
const githubFields = [
  "scope",
  "url",
  "url_v2",
  "token",
  "version",
  "timeout",
  "ghtoken",
  "repository",
] as const;
export type GithubFields = Partial<Record<(typeof githubFields)[number], string>>;

type Fields = Map<string, string>;

/** Parses `SCOPE`, and `type=registry|local|gha` with their fields; several in one value are separated by commas. */
export function parseCaches(text: string, option: string): CacheEntry[] {
  return split(text).map((part) => (typeof part === "string" ? scopeOf(part) : cacheOf(part, option)));
}

/** Parses the same for writing. */
export function parseWrittenCaches(text: string, option: string): WrittenCacheEntry[] {
  return split(text).map((part) => (typeof part === "string" ? scopeOf(part) : writtenCacheOf(part, option)));
}

/** Returns the cache that the fields mean. An empty field is as if it were not given. */
export function cacheOf(given: ReadonlyMap<string, string>, option: string): CacheEntry {
  const fields = new Map(given);
  const entry = placeOf(fields, "src", option);
  if (entry.kind !== "unsupported") refuseRest(fields, [], option);
  return entry;
}

/** Returns the same for writing. */
export function writtenCacheOf(given: ReadonlyMap<string, string>, option: string): WrittenCacheEntry {
  const fields = new Map(given);
  const entry = placeOf(fields, "dest", option);
  if (entry.kind === "unsupported") return entry;
  const mode = take(fields, "mode") ?? "min";
  if (mode !== "min" && mode !== "max")
    throw wrongCache(option, `mode must be min or max, not ${quote(mode)}`);
  const writing = {
    mode,
    compression: readCompression(take(fields, "compression") ?? "gzip", option),
    compressionLevel: take(fields, "compression-level"),
    keepBytes: readSize(fields, "keep", option),
    mounts: readMounts(fields, option),
  } as const;
  refuseRest(fields, ignoredForWriting, option);
  return { ...entry, writing };
}

/** What buildx has and bough always does. */
const ignoredForWriting = ["image-manifest", "oci-mediatypes", "ignore-error", "force-compression"];

function scopeOf(name: string): Extract<OtherCache, { kind: "scope" | "none" }> {
  return name === "" ? { kind: "none" } : { kind: "scope", name };
}

/** Returns names of scopes, and the fields of other caches. */
function split(text: string): (string | Fields)[] {
  const parts: (string | Fields)[] = [];
  let fields: Fields | undefined;
  let last: string | undefined;
  for (const word of text.split(",").filter((each) => each !== "")) {
    const [, name, content = ""] = /^([a-z][a-z0-9_-]*)=(.*)$/s.exec(word) ?? [];
    if (name === undefined && last === "mounts") {
      // Its ids are separated by commas, too.
      fields?.set(last, `${fields.get(last)},${word}`);
      continue;
    }
    last = name;
    if (name === undefined) {
      fields = undefined;
      // As in buildx, an image's name alone would be a registry's; here it is a scope.
      parts.push(word);
      continue;
    }
    // The fields of a cache have any order: what it has already is another one's.
    if (fields === undefined || fields.has(name)) {
      fields = new Map();
      parts.push(fields);
    }
    fields.set(name, content);
  }
  return parts.length === 0 ? [""] : parts;
}

function placeOf(
  fields: Fields,
  place: "src" | "dest",
  option: string,
): OutsideCache | Extract<OtherCache, { kind: "unsupported" }> {
  const type = take(fields, "type") ?? (fields.has("ref") ? "registry" : "");
  switch (type) {
    case "registry":
      return { kind: "registry", reference: take(fields, "ref") ?? "" };
    case "local": {
      const path = take(fields, place);
      if (path === undefined) throw wrongCache(option, `type=local needs ${place}=DIRECTORY`);
      return { kind: "local", path, tag: take(fields, "tag") };
    }
    case "gha": {
      const given = githubFields.map((name) => [name, take(fields, name)] as const);
      return { kind: "gha", fields: Object.fromEntries(given.filter(([, value]) => value !== undefined)) };
    }
    case "":
      throw wrongCache(option, "type=registry, type=local or type=gha is missing");
    case "inline":
    case "s3":
    case "azblob":
      return { kind: "unsupported", type };
    default:
      throw wrongCache(option, `unknown type ${quote(type)}`);
  }
}

function readCompression(text: string, option: string): Compression {
  const found = findCompression(text);
  if (found !== undefined) return found;
  throw wrongCache(option, `compression must be gzip, zstd or uncompressed, not ${quote(text)}`);
}

/** The size limit of one cache mount's archive. */
const defaultMountBytes = 2_000_000_000;

function readMounts(fields: Fields, option: string): ChosenMounts | undefined {
  const maxBytes = readSize(fields, "mounts-max", option);
  const ids = take(fields, "mounts")
    ?.split(",")
    .filter((id) => id !== "");
  if (ids === undefined && maxBytes !== undefined)
    throw wrongCache(option, "mounts-max needs mounts=ID or mounts=*");
  if (ids === undefined) return undefined;
  return { ids: ids.includes("*") ? undefined : ids, maxBytes: maxBytes ?? defaultMountBytes };
}

function readSize(fields: Fields, name: string, option: string): number | undefined {
  const text = take(fields, name);
  if (text === undefined) return undefined;
  const bytes = parseSize(text);
  if (bytes === undefined) throw wrongCache(option, `${name} takes a size such as 10GB, not ${quote(text)}`);
  return bytes;
}

function take(fields: Fields, name: string): string | undefined {
  const value = fields.get(name);
  fields.delete(name);
  return value === "" ? undefined : value;
}

function refuseRest(fields: Fields, ignored: readonly string[], option: string): void {
  const [name] = [...fields.keys()].filter((field) => !ignored.includes(field));
  if (name !== undefined) throw wrongCache(option, `unknown field ${name}`);
}

/** `option`: the option or variable that names the cache. */
export function wrongCache(option: string, reason: string): BoughError {
  return usageError(
    `${option}: ${reason}`,
    "Name a scope on the service (main), a registry (type=registry,ref=HOST/NAME:TAG), a directory (type=local,dest=DIR, type=local,src=DIR), or GitHub's cache (type=gha,scope=NAME).",
  );
}

function quote(text: string): string {
  return JSON.stringify(text);
}
