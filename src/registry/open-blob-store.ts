import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { Secret } from "../secret.ts";
import type { Fetch } from "../service/service.ts";
import type { BlobStore } from "./blob-store.ts";
import { createRegistryClient } from "./client.ts";
import type { Environment } from "./credentials.ts";
import { createDirectoryStore } from "./directory-store.ts";
import { verifiesTls } from "./hosts.ts";
import { findSettings } from "./registries-conf.ts";
import { createRegistryStore } from "./registry-store.ts";
import { parseRepository } from "./repository.ts";

export interface StoreDependencies {
  /** Sends requests to addresses of the network. */
  fetch: Fetch;
  clock: Clock;
  /** Says where credentials and certificates are, and which registries need no TLS. */
  environment: Environment;
  /** Instead of those that docker and skopeo have stored. */
  credentials?: { username: string; password: string } | undefined;
  /** True to accept a registry without TLS or with an unknown certificate. One on this machine is accepted by default. */
  isInsecure?: boolean | undefined;
}

/** Opens `docker://HOST/NAME`, a repository of a registry, or `dir:/ABSOLUTE/PATH`, an OCI image layout. Sends no request. */
export function openBlobStore(address: string, dependencies: StoreDependencies): BlobStore {
  const [, kind, place = ""] = /^(docker:\/\/|dir:(?=\/))(.+)$/s.exec(address) ?? [];
  if (kind === undefined)
    throw new BoughError(
      `invalid address ${JSON.stringify(address)}: expected docker://HOST/NAME or dir:/PATH`,
    );
  if (kind === "dir:") return createDirectoryStore(place);
  const { fetch, clock, environment, credentials } = dependencies;
  const repository = parseRepository(place);
  const settings = findSettings(repository, environment);
  if (settings.isBlocked)
    throw new BoughError(`${repository.address} is blocked by this machine's registries.conf`);
  const isInsecure = dependencies.isInsecure ?? needsNoTls(repository.registry, settings, environment);
  const login = credentials && {
    kind: "password" as const,
    username: credentials.username,
    password: Secret.of(credentials.password),
  };
  return createRegistryStore(
    createRegistryClient({ repository, fetch, clock, environment, login, isInsecure }),
  );
}

/** The command line counts more than the configuration. */
function needsNoTls(
  registry: string,
  { isInsecure }: ReturnType<typeof findSettings>,
  environment: Environment,
): boolean {
  return !verifiesTls(registry, environment) || (isInsecure && environment.BOUGH_TLS_VERIFY === undefined);
}
