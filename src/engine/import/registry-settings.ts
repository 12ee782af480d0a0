import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../home-directory.ts";
import { retriesIn } from "../../registry/exchange.ts";
import { credentialHelpersIn, findSettings, type RegistryEndpoint } from "../../registry/registries-conf.ts";
import { parseRepository, type Repository, registryHost, verifiesTls } from "../../registry/repository.ts";

/** Arguments for skopeo: before the name of its command, and after it. */
interface SkopeoArguments {
  global: string[];
  copy: string[];
}

/**
 * Returns the arguments with which skopeo copies an image from the registry or mirror that bough itself would use, with as many attempts.
 * skopeo does not know bough's variables, and reads no other main file. A file for it is written to `directory`.
 *
 * @param name `docker://HOST/NAME:TAG`
 */
export function sourceWords(name: string, directory: string, environment: Environment): SkopeoArguments {
  const retries = ["--retry-times", String(retriesIn(environment))];
  const repository = repositoryOf(name);
  const settings = repository && findSettings(repository, environment);
  const isElsewhere =
    settings !== undefined &&
    (settings.mirrors.length > 0 || settings.location.repository.address !== repository?.address);
  if (settings !== undefined && (isElsewhere || environment.CONTAINERS_REGISTRIES_CONF)) {
    const path = join(directory, "registries.conf");
    writeFileSync(path, registriesText(settings, credentialHelpersIn(environment)), { mode: 0o600 });
    return { global: ["--registries-conf", path], copy: retries };
  }
  if (!verifiesTls(registryHost(name.slice("docker://".length)), environment))
    return { global: [], copy: [...retries, "--src-tls-verify=false"] };
  const demands = environment.BOUGH_TLS_VERIFY === "true" ? ["--src-tls-verify=true"] : [];
  return { global: [], copy: [...retries, ...demands] };
}

/** Returns the repository of an image's name; `undefined` for an invalid name. */
export function repositoryOf(name: string): Repository | undefined {
  const [, repository = ""] = /^docker:\/\/(.*?)(?::[^:/@]*)?(?:@.*)?$/.exec(name) ?? [];
  try {
    return parseRepository(repository);
  } catch {
    return undefined;
  }
}

/** Formats a file in which the repository has an entry of its own, which takes precedence over all shorter prefixes. */
function registriesText(
  { named, location, mirrors, isBlocked }: ReturnType<typeof findSettings>,
  helpers: unknown,
): string {
  const placeOf = ({ repository, isInsecure }: RegistryEndpoint) => [
    `location = ${quote(`${repository.registry}/${repository.name}`)}`,
    `insecure = ${isInsecure}`,
  ];
  const reads = { all: "all", digests: "digest-only", tags: "tag-only" };
  return [
    ...(Array.isArray(helpers)
      ? [`credential-helpers = [${helpers.map(String).map(quote).join(", ")}]`]
      : []),
    "[[registry]]",
    `prefix = ${quote(`${named.repository.registry}/${named.repository.name}`)}`,
    ...[...placeOf(location), `blocked = ${isBlocked}`],
    ...mirrors.flatMap((mirror) => [
      "[[registry.mirror]]",
      ...[...placeOf(mirror), `pull-from-mirror = ${quote(reads[mirror.reads])}`],
    ]),
    "",
  ].join("\n");
}

/** Quotes a string for TOML, in which JSON's strings are valid. */
function quote(text: string): string {
  return JSON.stringify(text);
}
