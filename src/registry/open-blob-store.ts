import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { isDigest } from "../image/digest.ts";
import type { Fetch } from "../service/service.ts";
import { type BlobSource, type BlobStore, WrongBlobError } from "./blob-store.ts";
import { createRegistryClient, type RegistryClient } from "./client.ts";
import type { RegistryCredentials } from "./credentials.ts";
import { createDirectoryStore } from "./directory-store.ts";
import { downloadBlob } from "./download.ts";
import { type GithubCaches, openGithubStore } from "./github/github-caches.ts";
import { isGithub } from "./github/scope-address.ts";
import { createReferrers, type Referrers } from "./referrers.ts";
import { findSettings, type RegistryEndpoint } from "./registries-conf.ts";
import { createRegistryStore } from "./registry-store.ts";
import { parseRepository } from "./repository.ts";

export interface StoreDependencies {
  /** Sends requests to addresses of the network. */
  fetch: Fetch;
  clock: Clock;
  /** Environment variables that locate credentials and certificates, and name registries without TLS. */
  environment: Environment;
  /** Replaces the credentials that docker and skopeo have stored. */
  credentials?: RegistryCredentials | undefined;
  /** True to accept a registry without TLS or with an unknown certificate. One on this machine is accepted by default. */
  isInsecure?: boolean | undefined;
  /** True to use the `location` of a repository in registries.conf. Default: the repository as it is named, as for a push. */
  followsLocation?: boolean;
  /** The scopes of GitHub's cache that this process has opened. */
  github?: GithubCaches | undefined;
}

/**
 * Opens `docker://HOST/NAME`, a repository of a registry, `dir:/ABSOLUTE/PATH`, an OCI image layout, or `gha:SCOPE@URL`, a scope of
 * GitHub's cache. Sends no request.
 */
export function openBlobStore(address: string, dependencies: StoreDependencies): BlobStore {
  if (isGithub(address)) return openGithubStore(address, dependencies);
  const { kind, place } = parseAddress(address);
  if (kind === "dir:") return createDirectoryStore(place);
  const settings = usableSettings(place, dependencies);
  return createRegistryStore(
    openClient(dependencies.followsLocation === true ? settings.location : settings.named, dependencies),
  );
}

/** Opens a store for reading. A repository is read from its mirrors, and from itself where they fail. */
export function openBlobSource(address: string, dependencies: StoreDependencies): BlobSource {
  if (isGithub(address)) return openGithubStore(address, dependencies);
  const { kind, place } = parseAddress(address);
  if (kind === "dir:") return createDirectoryStore(place);
  const { location, mirrors } = usableSettings(place, dependencies);
  const { registry, address: named } = parseRepository(place);
  const open = ({ reads, ...place }: RegistryEndpoint, retries?: number) => {
    // The credentials belong to the named registry, and no other may get them.
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
    // After a failure, the next endpoint is tried instead of another attempt.
    mirrors.map((mirror) => open(mirror, 0)),
  );
}

/** Opens the referrers of the manifests of `docker://HOST/NAME`. Sends no request. */
export function openReferrers(address: string, dependencies: StoreDependencies): Referrers {
  const { kind, place } = parseAddress(address);
  if (kind !== "docker://") throw new Error(`${address} is not a repository of a registry`);
  const { named, location } = usableSettings(place, dependencies);
  const client = openClient(dependencies.followsLocation === true ? location : named, dependencies);
  return createReferrers(client, dependencies.clock);
}

function parseAddress(address: string): { kind: string; place: string } {
  const [, kind, place = ""] = /^(docker:\/\/|dir:(?=[/\\]|[A-Za-z]:[/\\]))(.+)$/s.exec(address) ?? [];
  if (kind === undefined)
    throw new BoughError(
      `invalid address ${JSON.stringify(address)}: expected docker://HOST/NAME, dir:/PATH or gha:SCOPE@URL`,
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
  { repository, isInsecure }: Pick<RegistryEndpoint, "repository" | "isInsecure">,
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

interface OpenEndpoint extends Pick<RegistryEndpoint, "reads"> {
  client: RegistryClient;
  store: EndpointStore;
}

type EndpointStore = Pick<BlobSource, "getManifest" | "findDigest" | "hasBlob" | "readPart">;

/**
 * Creates a source that reads from mirrors before the repository itself. A mirror that lacks something is used for later reads, one
 * that fails is not.
 */
function createMirroredSource(
  address: string,
  origin: OpenEndpoint,
  mirrors: readonly OpenEndpoint[],
): BlobSource {
  const failures = new Map<OpenEndpoint, string>();
  const working = () => mirrors.filter((mirror) => !failures.has(mirror));

  /** Reads from the mirrors that serve `kind`, then from the registry itself. */
  async function readFirst<T>(
    kind: "tags" | "digests",
    read: (store: EndpointStore) => Promise<T | undefined>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const found = await readMirrors(kind, read, signal);
    if (found !== undefined) return found;
    try {
      return await read(origin.store);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BoughError) || failures.size === 0) throw error;
      const reasons = [...failures.values()].join("; ");
      throw new BoughError(`${error.message} (mirrors failed, too: ${reasons})`, {
        hint: error.hint,
        cause: error,
      });
    }
  }

  async function readMirrors<T>(
    kind: "tags" | "digests",
    read: (store: EndpointStore) => Promise<T | undefined>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const skipped = kind === "digests" ? "tags" : "digests";
    for (const mirror of working()) {
      if (mirror.reads === skipped) continue;
      try {
        const found = await read(mirror.store);
        if (found !== undefined) return found;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BoughError)) throw error;
        failures.set(mirror, error.message);
      }
    }
    return undefined;
  }

  return {
    address,
    getManifest: (reference, signal) =>
      readFirst(
        isDigest(reference) ? "digests" : "tags",
        (store) => store.getManifest(reference, signal),
        signal,
      ),
    findDigest: (tag, signal) => readFirst("tags", (store) => store.findDigest(tag, signal), signal),
    hasBlob: async (blob, signal) => {
      const has = async (store: EndpointStore) => ((await store.hasBlob(blob, signal)) ? true : undefined);
      return (await readFirst("digests", has, signal)) === true;
    },
    readPart: (blob, part, signal) =>
      readFirst("digests", async (store) => store.readPart?.(blob, part, signal), signal),
    async openBlob(blob, signal, checks) {
      const [first = origin, ...others] = [...working(), origin];
      const clients = [first.client, ...others.map(({ client }) => client)] as const;
      const onFailure = (client: RegistryClient, { message }: Error) => {
        const mirror = mirrors.find((each) => each.client === client);
        if (mirror !== undefined) failures.set(mirror, message);
      };
      if (others.length === 0) return downloadBlob(clients, blob, { signal, checks });
      const used = new Set<RegistryClient>();
      const onChunk = (client: RegistryClient) => void used.add(client);
      // The digest is checked for each reader, which can then begin again with the next endpoint.
      const chunks = await downloadBlob(clients, blob, { signal, checks: "digest", onFailure, onChunk });
      return reportingWrongBlob(chunks, (message) => {
        const usedMirrors = working().filter(({ client }) => used.has(client));
        for (const mirror of usedMirrors) failures.set(mirror, message);
        return usedMirrors.length > 0;
      });
    },
  };
}

/** Passes a blob on. Calls `onWrongBlob` if it is wrong, which returns true if a mirror has sent part of it. */
async function* reportingWrongBlob(
  chunks: AsyncIterable<Uint8Array>,
  onWrongBlob: (message: string) => boolean,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    if (!(error instanceof WrongBlobError)) throw error;
    throw new WrongBlobError(error.message, { isOfMirror: onWrongBlob(error.message) });
  }
}
