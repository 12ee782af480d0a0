/** The machine's and the user's settings for registries: https://github.com/containers/image/blob/main/docs/containers-registries.conf.5.md */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../errors.ts";
import { type Environment, inHome } from "../home-directory.ts";
import { asRecord, asText, type JsonRecord } from "../service/http/json.ts";
import { errorCode, reasonOf } from "../system-error.ts";
import { hub, parseMirror, parseRepository, type Repository, verifiesTls } from "./repository.ts";

/** A repository from which another one's images are read, such as a mirror. */
export interface RegistryEndpoint {
  repository: Repository;
  /** True if it may lack TLS, or have an unknown certificate. */
  isInsecure: boolean;
  /** The kinds of references that are read from it: a mirror's tags may be older. */
  reads: "all" | "digests" | "tags";
}

/** The directory of the machine's settings. Windows has none: each user may make `\etc` there. */
export const machineSettings = process.platform === "win32" ? undefined : "/etc";

interface RegistrySettings {
  isBlocked: boolean;
  /** The repository itself. Pushes go there, as with other tools. */
  named: RegistryEndpoint;
  /** The repository's `location` in the settings; without one, the same as `named`. */
  location: RegistryEndpoint;
  /** Mirrors, in the order in which they are tried before the location. */
  mirrors: readonly RegistryEndpoint[];
}

/** Returns the settings of the longest prefix of the repository, with the mirrors of `BOUGH_REGISTRY_MIRROR` for Docker Hub. */
export function findSettings(
  repository: Repository,
  environment: Environment,
  system = machineSettings,
): RegistrySettings {
  const entries = new Map<string, JsonRecord>();
  for (const path of configurationFiles(environment, system)) {
    for (const entry of listIn(readToml(path) ?? {}, "registry")) {
      const prefix = asText(entry.prefix) ?? asText(entry.location);
      // A later file replaces an entry of an earlier one.
      if (prefix !== undefined) entries.set(prefix, entry);
    }
  }
  const written = `${repository.registry}/${repository.name}`;
  const [prefix = ""] = [...entries.keys()]
    .filter((each) => matchedLength(each, written) > 0)
    .sort((one, other) => other.length - one.length);
  const entry = entries.get(prefix) ?? {};
  const rest = written.slice(matchedLength(prefix, written));
  const placeAt = (
    location: string | undefined,
    { insecure }: JsonRecord,
    reads: RegistryEndpoint["reads"],
  ) => {
    const at = location === undefined ? repository : parseRepository(`${location}${rest}`, true);
    return { repository: at, isInsecure: acceptsAny(at, insecure === true, environment), reads };
  };
  const own = repository.registry === hub ? ownMirrors(environment) : [];
  const onlyDigests = entry["mirror-by-digest-only"] === true;
  return {
    isBlocked: entry.blocked === true,
    named: placeAt(undefined, entry, "all"),
    location: placeAt(asText(entry.location), entry, "all"),
    mirrors: [
      ...own.map(({ location, isInsecure }): RegistryEndpoint => {
        const at = parseRepository(`${location}/${repository.name}`, true);
        return { repository: at, isInsecure: acceptsAny(at, isInsecure, environment), reads: "all" };
      }),
      ...listIn(entry, "mirror").flatMap((mirror) => {
        const location = asText(mirror.location);
        return location === undefined ? [] : [placeAt(location, mirror, readsOf(mirror, onlyDigests))];
      }),
    ],
  };
}

/** Returns the credential helpers that the main file names for skopeo. */
export function credentialHelpersIn(environment: Environment): unknown {
  const [main] = configurationFiles(environment, "/etc");
  return main === undefined ? undefined : readToml(main)?.["credential-helpers"];
}

/** Returns true if any certificate is accepted. The command line overrides the settings. */
function acceptsAny({ registry }: Repository, isInsecure: boolean, environment: Environment): boolean {
  return !verifiesTls(registry, environment) || (isInsecure && environment.BOUGH_TLS_VERIFY === undefined);
}

function ownMirrors({ BOUGH_REGISTRY_MIRROR = "" }: Environment) {
  return BOUGH_REGISTRY_MIRROR.split(/\s+/)
    .filter((text) => text !== "")
    .map((text) => {
      const mirror = parseMirror(text);
      if (mirror === undefined)
        throw new BoughError(`BOUGH_REGISTRY_MIRROR: invalid mirror ${JSON.stringify(text)}`, {
          hint: "A mirror is HOST[:PORT][/PATH], such as mirror.example; several are separated by spaces.",
        });
      return mirror;
    });
}

function readsOf(mirror: JsonRecord, onlyDigests: boolean): RegistryEndpoint["reads"] {
  if (onlyDigests) return "digests";
  const reads = { "digest-only": "digests", "tag-only": "tags" } as const;
  const name = asText(mirror["pull-from-mirror"]);
  return name === "digest-only" || name === "tag-only" ? reads[name] : "all";
}

/** Returns the length of the part of a repository that a prefix matches; 0 if it does not match. */
function matchedLength(prefix: string, written: string): number {
  if (prefix === "") return 0;
  if (!prefix.startsWith("*.")) return `${written}/`.startsWith(`${prefix}/`) ? prefix.length : 0;
  const end = written.indexOf(prefix.slice(1)) + prefix.length - 1;
  const isEnd = end >= prefix.length && [":", "/", undefined].includes(written[end]);
  return isEnd && !written.slice(0, end - prefix.length + 1).includes("/") ? end : 0;
}

function configurationFiles(environment: Environment, system: string | undefined): string[] {
  const { XDG_CONFIG_HOME, CONTAINERS_REGISTRIES_CONF } = environment;
  if (CONTAINERS_REGISTRIES_CONF) return [CONTAINERS_REGISTRIES_CONF];
  const parents = [system, XDG_CONFIG_HOME || inHome(environment, ".config")]
    .filter((parent) => parent !== undefined)
    .map((parent) => join(parent, "containers"));
  // The user's main file replaces the machine's. All files of registries.conf.d apply.
  const main = parents.map((parent) => join(parent, "registries.conf")).findLast((path) => existsSync(path));
  const others = parents.flatMap((parent) => filesIn(join(parent, "registries.conf.d"), /\.conf$/));
  return [...(main === undefined ? [] : [main]), ...others];
}

/** Returns a directory's files that match, sorted by name; none if the directory is missing or not readable. */
export function filesIn(directory: string, pattern: RegExp): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => pattern.test(name))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(errorCode(error) ?? "")) return [];
    throw error;
  }
}

function listIn(record: JsonRecord, field: string): JsonRecord[] {
  const list = record[field];
  return Array.isArray(list) ? list.map(asRecord).filter((entry) => entry !== undefined) : [];
}

function readToml(path: string): JsonRecord | undefined {
  try {
    return asRecord(Bun.TOML.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (["ENOENT", "EACCES"].includes(errorCode(error) ?? "")) return undefined;
    throw new BoughError(`the configuration of registries in ${path} cannot be read: ${reasonOf(error)}`);
  }
}
