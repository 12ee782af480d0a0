import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Fetch } from "../service/service.ts";
import type { BlobSource, BlobStore } from "./blob-store.ts";
import { createRegistryClient } from "./client.ts";
import type { Environment, RegistryCredentials } from "./credentials.ts";
import { createDirectoryStore } from "./directory-store.ts";
import { createMirroredSource } from "./mirrors.ts";
import { findSettings, type Place } from "./registries-conf.ts";
import { createRegistryStore } from "./registry-store.ts";
import { parseRepository } from "./repository.ts";

export interface StoreDependencies {
  /** Sends requests to addresses of the network. */
  fetch: Fetch;
  clock: Clock;
  /** Says where credentials and certificates are, and which registries need no TLS. */
  environment: Environment;
  /** Instead of those that docker and skopeo have stored. */
  credentials?: RegistryCredentials | undefined;
  /** True to accept a registry without TLS or with an unknown certificate. One on this machine is accepted by default. */
  isInsecure?: boolean | undefined;
  /** True to use the place where registries.conf says that a repository is. Default: the one that is named, as for a push. */
  followsLocation?: boolean;
}

/** Opens `docker://HOST/NAME`, a repository of a registry, or `dir:/ABSOLUTE/PATH`, an OCI image layout. Sends no request. */
export function openBlobStore(address: string, dependencies: StoreDependencies): BlobStore {
  const { kind, place } = parseAddress(address);
  if (kind === "dir:") return createDirectoryStore(place);
  const settings = usableSettings(place, dependencies);
  return createRegistryStore(
    openClient(dependencies.followsLocation === true ? settings.location : settings.named, dependencies),
  );
}

/** Opens the same for reading. A repository is read from its mirrors, and from itself where they fail. */
export function openBlobSource(address: string, dependencies: StoreDependencies): BlobSource {
  const { kind, place } = parseAddress(address);
  if (kind === "dir:") return createDirectoryStore(place);
  const { location, mirrors } = usableSettings(place, dependencies);
  const { registry, address: named } = parseRepository(place);
  const open = ({ reads, ...place }: Place, retries?: number) => {
    // Given credentials are those of the registry that is named, and no other may see them.
    const isNamed = place.repository.registry === registry;
    const client = openClient(
      place,
      isNamed ? dependencies : { ...dependencies, credentials: undefined },
      retries,
    );
    return { client, store: createRegistryStore(client), reads };
  };
  return createMirroredSource(
    named,
    open(location),
    // Instead of another attempt, the next place is asked.
    mirrors.map((mirror) => open(mirror, 0)),
  );
}

function parseAddress(address: string): { kind: string; place: string } {
  const [, kind, place = ""] = /^(docker:\/\/|dir:(?=\/))(.+)$/s.exec(address) ?? [];
  if (kind === undefined)
    throw new BoughError(
      `invalid address ${JSON.stringify(address)}: expected docker://HOST/NAME or dir:/PATH`,
    );
  return { kind, place };
}

function usableSettings(place: string, { environment }: StoreDependencies) {
  const repository = parseRepository(place);
  const settings = findSettings(repository, environment);
  if (settings.isBlocked)
    throw new BoughError(`${repository.address} is blocked by this machine's registries.conf`);
  return settings;
}

function openClient(
  { repository, isInsecure }: Pick<Place, "repository" | "isInsecure">,
  dependencies: StoreDependencies,
  retries?: number,
) {
  const { fetch, clock, environment, credentials } = dependencies;
  const login = credentials && { kind: "password" as const, ...credentials };
  return createRegistryClient({
    ...{ repository, fetch, clock, environment, login },
    isInsecure: dependencies.isInsecure ?? isInsecure,
    ...(retries !== undefined && { retries }),
  });
}
