import { createSingleFlight } from "../../once.ts";
import type { FoundCommit } from "../addresses/repository-address.ts";
import { redactUrl } from "../addresses/source-url.ts";
import type { KeyPins } from "../reference-lock.ts";
import { fetchContent, watched, withRetries } from "../remote-files/fetch-url.ts";
import type { RemoteAccess } from "../remote-files/remote-access.ts";
import { findCommit, pinOf } from "../repositories/resolve-repository.ts";
import type { KeyJob } from "./key-job.ts";

/** The hashes and commits of the sources of ADD, each found once for all targets of a command. */
interface RemoteSourceKeys extends Pick<KeyJob, "hashUrl" | "findCommit"> {
  readonly pins: Pick<KeyPins, "urls" | "commits">;
}

export function createRemoteSourceKeys(): RemoteSourceKeys {
  const urls = new Map<string, string>();
  const commits = new Map<string, FoundCommit>();
  const hashing = createSingleFlight<string>({ keeps: true });
  const finding = createSingleFlight<FoundCommit>({ keeps: true });
  return {
    pins: { urls, commits },
    hashUrl: (url, access) =>
      hashing(url, async () => {
        const sha256 = await lockedHash(url, access);
        urls.set(url, sha256);
        return sha256;
      }),
    findCommit: (address, access) =>
      finding(pinOf(address), async () => {
        const found = await findCommit(address, access);
        commits.set(pinOf(address), found);
        return found;
      }),
  };
}

async function lockedHash(url: string, access: RemoteAccess): Promise<string> {
  const { lock, buildArgs } = access;
  const read = () => hashContent(url, access);
  return lock === undefined ? read() : lock.pin("url", redactUrl(url, buildArgs), read);
}

/** Hashes the content of a URL without keeping it. */
function hashContent(url: string, access: RemoteAccess): Promise<string> {
  return withRetries(access, false, async () => {
    const { body } = await fetchContent(url, access);
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const chunk of watched(body, access)) hasher.update(chunk);
    return hasher.digest("hex");
  });
}
