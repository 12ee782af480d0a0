/** What the machine and its user say about registries: https://github.com/containers/image/blob/main/docs/containers-registries.conf.5.md */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError, messageOf } from "../errors.ts";
import { asRecord, asText } from "../service/http/json.ts";
import { errorCode } from "../system-error.ts";
import type { Environment } from "./credentials.ts";
import { parseRepository, type Repository } from "./repository.ts";

interface RegistrySettings {
  /** Needs no TLS, or has an unknown certificate. */
  isInsecure: boolean;
  isBlocked: boolean;
  /** Its images are elsewhere: at another location, or in mirrors. skopeo knows where. */
  isElsewhere: boolean;
}

/** Returns what the entry of the longest prefix of the repository says. */
export function findSettings(
  { registry, name }: Pick<Repository, "registry" | "name">,
  environment: Environment,
  system = "/etc",
): RegistrySettings {
  const settings = new Map<string, RegistrySettings>();
  for (const path of configurationFiles(environment, system)) {
    for (const entry of entriesIn(path)) {
      const prefix = asText(entry.prefix) ?? asText(entry.location);
      if (prefix === undefined) continue;
      // A later file replaces an entry of an earlier one.
      settings.set(prefix, {
        isInsecure: entry.insecure === true,
        isBlocked: entry.blocked === true,
        isElsewhere: (asText(entry.location) ?? prefix) !== prefix || entry.mirror !== undefined,
      });
    }
  }
  const [longest] = [...settings.keys()]
    .filter((prefix) => matches(prefix, registry, name))
    .sort((a, b) => b.length - a.length);
  const none = { isInsecure: false, isBlocked: false, isElsewhere: false };
  return (longest === undefined ? undefined : settings.get(longest)) ?? none;
}

/** `address`: `docker://HOST/NAME` */
export function isElsewhere(address: string, environment: Environment): boolean {
  return findSettings(parseRepository(address.slice("docker://".length)), environment).isElsewhere;
}

function matches(prefix: string, registry: string, name: string): boolean {
  if (prefix.startsWith("*.")) return registry.endsWith(prefix.slice(1));
  return `${registry}/${name}/`.startsWith(`${prefix}/`);
}

function configurationFiles(
  { HOME, XDG_CONFIG_HOME, CONTAINERS_REGISTRIES_CONF }: Environment,
  system: string,
): string[] {
  if (CONTAINERS_REGISTRIES_CONF) return [CONTAINERS_REGISTRIES_CONF];
  const config = XDG_CONFIG_HOME || (HOME && join(HOME, ".config"));
  const parents = [join(system, "containers"), ...(config ? [join(config, "containers")] : [])];
  // Of the main files, the user's replaces the machine's; of the others, all count.
  const main = parents.map((parent) => join(parent, "registries.conf")).findLast((path) => existsSync(path));
  const others = parents.flatMap((parent) => confFilesIn(join(parent, "registries.conf.d")));
  return [...(main === undefined ? [] : [main]), ...others];
}

function confFilesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith(".conf"))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(errorCode(error) ?? "")) return [];
    throw error;
  }
}

function entriesIn(path: string): Record<string, unknown>[] {
  try {
    const entries: unknown = asRecord(Bun.TOML.parse(readFileSync(path, "utf8")))?.registry;
    if (!Array.isArray(entries)) return [];
    return entries.map(asRecord).filter((entry) => entry !== undefined);
  } catch (error) {
    if (["ENOENT", "EACCES"].includes(errorCode(error) ?? "")) return [];
    throw new BoughError(`the configuration of registries in ${path} cannot be read: ${messageOf(error)}`);
  }
}
