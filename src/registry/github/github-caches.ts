import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import type { Fetch } from "../../service/service.ts";
import type { BlobStore } from "../blob-store.ts";
import { defaultWaitMilliseconds, findAccess, type GithubAccess, refsOf, tagOfRef } from "./access.ts";
import { createCacheService } from "./cache-service.ts";
import { createGithubStore } from "./github-store.ts";
import { parseScopeAddress } from "./scope-address.ts";

/** Scopes of GitHub's cache in this process, by their addresses. */
export interface GithubCaches {
  /** Access that options give, in place of the environment. */
  access: Map<string, GithubAccess>;
  /** Open scopes. Their users share what was read, such as the index. */
  stores: Map<string, BlobStore>;
}

interface Dependencies {
  fetch: Fetch;
  clock: Clock;
  environment: Environment;
  github?: GithubCaches | undefined;
}

/** Opens `gha:SCOPE@URL`. Sends no request. */
export function openGithubStore(address: string, dependencies: Dependencies): BlobStore {
  const { github = { access: new Map(), stores: new Map() } } = dependencies;
  return github.stores.getOrInsertComputed(address, () => {
    const parsed = parseScopeAddress(address);
    if (parsed === undefined) throw new BoughError(`invalid address ${JSON.stringify(address)}`);
    const { scope, url } = parsed;
    const access = github.access.get(address) ?? accessIn(dependencies.environment, url);
    const service = createCacheService({ ...dependencies, access });
    const tags = refsOf(access.token).map(tagOfRef);
    return createGithubStore({ address, scope, tags, service, clock: dependencies.clock });
  });
}

/** Returns the environment's access, only for its own service: a stored address may name another one, which must not get the token. */
function accessIn(environment: Environment, url: string): GithubAccess {
  const found = findAccess({}, environment);
  if (found.kind === "found" && found.url === url)
    return { url, token: found.token, maxWaitMilliseconds: defaultWaitMilliseconds };
  throw new BoughError(`only a job of GitHub Actions can read the cache of ${url}`);
}
