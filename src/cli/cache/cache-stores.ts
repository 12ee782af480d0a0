import { resolve } from "node:path";
import { type DecodedIndex, UnusableIndexError } from "../../builder/scopes/index-file.ts";
import { isCache, readArtifact } from "../../builder/scopes/registry/artifact.ts";
import type { CacheStore, CacheTarget, ChosenMounts } from "../../builder/scopes/registry/cache-store.ts";
import { BoughError, usageError } from "../../errors.ts";
import { type Compression, compressions } from "../../image/compression.ts";
import { isWrittenAsPath } from "../../paths/local-path.ts";
import { isGithub } from "../../registry/github/scope-address.ts";
import { openBlobStore } from "../../registry/open-blob-store.ts";
import { parseRecord } from "../../service/http/json.ts";
import { parseReference } from "../../service/images/reference.ts";
import { sha256Of } from "../../sha256.ts";
import { parseSize } from "../../terminal/quantity.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Runtime } from "../process/runtime.ts";
import { type GithubFields, githubFields, githubStores } from "./github-cache.ts";

/** The values of `--cache-from` or `--cache-to`: names of scopes, and caches outside the service. */
interface GivenCaches<Store> {
  scopes: string[];
  stores: Store[];
}

interface ParseOptions extends Pick<Runtime, "workingDirectory" | "environment" | "github" | "isPlugin"> {
  /** The option or variable that gave the values. */
  option: string;
  warn(text: string): void;
}

/** Parses `SCOPE`, and `type=registry|local|gha` with their fields; several in one value are separated by commas. */
export function parseSources(values: readonly string[], options: ParseOptions): GivenCaches<CacheStore> {
  return parseAll(values, (fields) => {
    const stores = storesOf(fields, "src", options);
    refuseRest(fields, [], options);
    return stores;
  });
}

/** Parses the same for writing. */
export function parseTargets(values: readonly string[], options: ParseOptions): GivenCaches<CacheTarget> {
  return parseAll(values, (fields) => {
    const stores = storesOf(fields, "dest", options);
    const mode = take(fields, "mode") ?? "min";
    if (mode !== "min" && mode !== "max") throw wrong(options, `mode must be min or max, not ${quote(mode)}`);
    const compression = readCompression(take(fields, "compression") ?? "gzip", options);
    const level = take(fields, "compression-level");
    if (level !== undefined)
      options.warn(
        `${options.option}: compression-level=${level} makes no difference: the level is fixed, so that the same layer is always the same bytes`,
      );
    const keepBytes = readSize(fields, "keep", options);
    const mounts = readMounts(fields, options);
    refuseRest(fields, ignoredForWriting, options);
    return stores.map((store) => ({ ...store, mode, compression, keepBytes, mounts }));
  });
}

/** What buildx has and bough always does. */
const ignoredForWriting = ["image-manifest", "oci-mediatypes", "ignore-error", "force-compression"];

type FieldsOf = Map<string, string>;

function parseAll<Store>(
  values: readonly string[],
  parse: (fields: FieldsOf) => Store[],
): GivenCaches<Store> {
  const given: GivenCaches<Store> = { scopes: [], stores: [] };
  for (const value of values) {
    let fields: FieldsOf | undefined;
    let last: string | undefined;
    const end = () => {
      if (fields !== undefined) given.stores.push(...parse(fields));
      fields = undefined;
    };
    for (const word of value.split(",").filter((text) => text !== "")) {
      const [, name, content = ""] = /^([a-z][a-z0-9_-]*)=(.*)$/s.exec(word) ?? [];
      if (name === undefined && last === "mounts") {
        // Its ids are separated by commas, too.
        fields?.set(last, `${fields.get(last)},${word}`);
        continue;
      }
      last = name;
      if (name === undefined) {
        end();
        // As in buildx, an image's name alone would be a registry's; here it is a scope.
        given.scopes.push(word);
        continue;
      }
      // The fields of a cache have any order: what it has already is another one's.
      if (fields?.has(name) === true) end();
      fields ??= new Map();
      fields.set(name, content);
    }
    end();
  }
  return given;
}

function storesOf(fields: FieldsOf, place: "src" | "dest", options: ParseOptions): CacheStore[] {
  const type = take(fields, "type") ?? (fields.has("ref") ? "registry" : "");
  switch (type) {
    case "registry":
      return [registryStore(take(fields, "ref") ?? "", options)];
    case "local": {
      const path = take(fields, place) ?? "";
      if (path === "") throw wrong(options, `type=local needs ${place}=DIRECTORY`);
      return [directoryStore(resolve(options.workingDirectory, path), take(fields, "tag"))];
    }
    case "gha": {
      const given = githubFields.map((name) => [name, take(fields, name)]);
      const named: GithubFields = Object.fromEntries(given.filter(([, value]) => value !== undefined));
      return githubStores(named, place === "src" ? "read" : "write", options);
    }
    default:
      throw wrong(options, reasonAgainst(type));
  }
}

/** Parses the reference of a cache in a registry. */
export function registryStore(reference: string, options: Pick<ParseOptions, "option">): CacheStore {
  const parsed = reference === "" ? undefined : parseReference(reference);
  if (parsed?.kind !== "registry" || parsed.digest !== undefined)
    throw wrong(options, `type=registry needs ref=HOST/NAME:TAG, not ${quote(reference)}`);
  const [, address = "", tag = ""] = /^(.+):([^:/]+)$/.exec(parsed.url) ?? [];
  const [, name = ""] = /^docker:\/\/[^/]+\/(.+)$/.exec(address) ?? [];
  return { label: `${address.slice("docker://".length)}:${tag}`, address, tag, name: `${name}:${tag}` };
}

/** Returns the cache of a scope in a repository: each scope has a tag of its own there. */
export function storeOfScope(repository: string, scope: string): CacheStore {
  const option = { option: "BOUGH_CACHE_REGISTRY" };
  // A pipeline makes it of its repository's name, which may have capitals: no registry has them.
  const lowered = repository.toLowerCase();
  if (/^[^/]*:\d+$/.test(repository))
    throw usageError(
      `BOUGH_CACHE_REGISTRY: ${quote(repository)} is a registry without the name of a repository`,
      `Name a repository of it, such as ${repository}/cache: each branch gets a tag of its own there.`,
    );
  if (/:[^/]*$|@/.test(repository))
    throw usageError(
      `BOUGH_CACHE_REGISTRY: ${quote(repository)} has a tag`,
      "Name a repository (HOST/NAME): each branch gets a tag of its own there.",
    );
  return registryStore(`${lowered}:${tagOfScope(scope)}`, option);
}

/** Returns a tag that no other scope has, though tags have no slashes. */
function tagOfScope(scope: string): string {
  if (/^[a-z0-9_][a-z0-9_.-]*$/.test(scope) && !/-[0-9a-f]{8}$/.test(scope)) return scope;
  return `${scope.replace(/[^a-z0-9_.-]/g, "-").replace(/^[.-]/, "_")}-${sha256Of(scope).slice(0, 8)}`;
}

export function targetOf(store: CacheStore, mode: CacheTarget["mode"]): CacheTarget {
  return { ...store, mode, compression: "gzip", keepBytes: undefined, mounts: undefined };
}

/** `path`: absolute. */
export function directoryStore(path: string, tag = "latest"): CacheStore {
  const label = tag === "latest" ? path : `${path} (${tag})`;
  // The directory may be elsewhere on the next machine.
  return { label, address: `dir:${path}`, tag, name: `directory:${tag}` };
}

function reasonAgainst(type: string): string {
  const reasons: Readonly<Record<string, string>> = {
    "": "type=registry, type=local or type=gha is missing",
    inline: "a cache within the pushed image is not supported: it would lack the steps of other stages",
    s3: "a cache in S3 is not supported",
    azblob: "a cache in Azure's storage is not supported",
  };
  return reasons[type] ?? `unknown type ${quote(type)}`;
}

function readCompression(text: string, options: ParseOptions): Compression {
  const name = text === "uncompressed" ? "none" : text;
  const found = compressions.find((compression) => compression === name);
  if (found === undefined)
    throw wrong(options, `compression must be gzip, zstd or uncompressed, not ${quote(text)}`);
  return found;
}

/** The size limit of one cache mount's archive. */
const defaultMountBytes = 2_000_000_000;

function readMounts(fields: FieldsOf, options: ParseOptions): ChosenMounts | undefined {
  const maxBytes = readSize(fields, "mounts-max", options);
  const ids = take(fields, "mounts")
    ?.split(",")
    .filter((id) => id !== "");
  if (ids === undefined && maxBytes !== undefined)
    throw wrong(options, "mounts-max needs mounts=ID or mounts=*");
  if (ids === undefined) return undefined;
  return { ids: ids.includes("*") ? undefined : ids, maxBytes: maxBytes ?? defaultMountBytes };
}

function readSize(fields: FieldsOf, name: string, options: ParseOptions): number | undefined {
  const text = take(fields, name);
  if (text === undefined) return undefined;
  const bytes = parseSize(text);
  if (bytes === undefined) throw wrong(options, `${name} takes a size such as 10GB, not ${quote(text)}`);
  return bytes;
}

function take(fields: FieldsOf, name: string): string | undefined {
  const value = fields.get(name);
  fields.delete(name);
  return value === "" ? undefined : value;
}

function refuseRest(fields: FieldsOf, ignored: readonly string[], options: ParseOptions): void {
  const [name] = [...fields.keys()].filter((field) => !ignored.includes(field));
  if (name !== undefined) throw wrong(options, `unknown field ${name}`);
}

function wrong({ option }: Pick<ParseOptions, "option">, reason: string) {
  return usageError(
    `${option}: ${reason}`,
    "Name a scope on the service (main), a registry (type=registry,ref=HOST/NAME:TAG), a directory (type=local,dest=DIR, type=local,src=DIR), or GitHub's cache (type=gha,scope=NAME).",
  );
}

function quote(text: string): string {
  return JSON.stringify(text);
}

/** Parses a cache outside the service: `HOST/NAME:TAG`, a path, or as `--cache-from` takes it. `undefined`: the name of a scope. */
export function parseStore(
  text: string,
  runtime: Pick<Runtime, "workingDirectory" | "environment" | "github">,
): CacheStore | undefined {
  const { workingDirectory, environment, github } = runtime;
  const options = { option: "bough cache", workingDirectory, environment, github, warn: () => undefined };
  if (text.includes("=")) return parseSources([text], options).stores[0];
  if (isWrittenAsPath(text)) return directoryStore(resolve(workingDirectory, text));
  return text.includes(":") ? registryStore(text, options) : undefined;
}

export async function readStore(
  store: CacheStore,
  invocation: Pick<Invocation, "runtime">,
): Promise<DecodedIndex> {
  const { signal } = invocation.runtime;
  try {
    const found = await readArtifact(open(store, invocation), store.tag, {
      name: store.name,
      verify: undefined,
      signal,
    });
    if (found !== undefined) return found.decoded;
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
    throw new BoughError(`cannot read the cache ${store.label}: ${error.message}`);
  }
  throw noSuchCache(store);
}

/** Removes the cache's manifest; the registry's own collection removes its layers. Refuses anything else that has the tag. */
export async function removeStore(store: CacheStore, invocation: Pick<Invocation, "runtime">): Promise<void> {
  const { signal } = invocation.runtime;
  if (isGithub(store.address))
    throw new BoughError(`${store.label} can't be removed from here: only GitHub removes its entries`, {
      hint: "`gh cache list --key bough-` lists them, and `gh cache delete` removes them.",
    });
  const blobs = open(store, invocation);
  const manifest = await blobs.getManifest(store.tag, signal);
  if (manifest === undefined) throw noSuchCache(store);
  if (!isCache(parseRecord(manifest.bytes)))
    throw new BoughError(`${store.label} is no cache of bough: it is not removed`);
  await blobs.removeManifest(store.tag, signal);
}

function open(
  { address }: CacheStore,
  { runtime: { fetch, clock, environment, github } }: Pick<Invocation, "runtime">,
) {
  return openBlobStore(address, { fetch, clock, environment, github, followsLocation: true });
}

function noSuchCache({ label }: CacheStore): BoughError {
  return new BoughError(`there is no cache ${label}`, {
    hint: "`bough build --cache-to type=registry,ref=HOST/NAME:TAG` or `type=local,dest=DIR` creates one.",
  });
}
