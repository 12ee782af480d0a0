import type { Message } from "../../messages/wording.ts";
import {
  type FoundCommit,
  isCommitHash,
  lockedName,
  namesCommit,
  type RepositoryAddress,
} from "../addresses/repository-address.ts";
import type { RemoteAccess } from "../remote-files/remote-access.ts";
import { createGitClient, type GitClient, refuser } from "./git-client.ts";

/** Returns the commit that an address means, by the address itself, by the lock, or else by the server. */
export function findCommit(address: RepositoryAddress, access: RemoteAccess): Promise<FoundCommit> {
  const { lock, buildArgs, pins } = access;
  const find = async () => pins?.commits.get(pinOf(address)) ?? fetchCommitOf(address, access);
  if (lock === undefined || namesCommit(address) || address.isByCommit) return find();
  return lock.pin("git", lockedName(address, buildArgs), find);
}

/** Returns the advice for a commit that `findCommit` has returned and the repository does not have. */
export function adviceIfGone(address: RepositoryAddress, { lock, buildArgs }: RemoteAccess): Message {
  return lock === undefined || namesCommit(address)
    ? "No branch or tag contains it. If it has just been removed, build again."
    : lock.adviceFor(lockedName(address, buildArgs));
}

/** Returns the key of an address in `KeyPins`. */
export function pinOf(address: RepositoryAddress): string {
  return JSON.stringify(address);
}

async function fetchCommitOf(address: RepositoryAddress, access: RemoteAccess): Promise<FoundCommit> {
  const { ref, commit: expected, isByCommit } = address;
  const refuse = refuser(address, access);
  if (expected !== undefined && !/^[0-9a-f]+$/i.test(expected))
    throw refuse(`invalid checksum ${expected} for a git repository: expected hex commit hash`);
  const require = (...commits: readonly string[]) => {
    if (expected === undefined || commits.some((commit) => commit.startsWith(expected.toLowerCase()))) return;
    throw refuse(`expected checksum to match ${expected}, got ${commits.join(" or ")}`);
  };
  if (ref !== undefined && isCommitHash(ref)) {
    require(ref);
    return { ref: undefined, commit: ref };
  }
  if (isByCommit) {
    const commit = expected?.toLowerCase();
    if (commit === undefined || !isCommitHash(commit))
      throw refuse("fetch-by-commit requires a full commit hash as the checksum");
    return { ref: undefined, commit };
  }
  const client = createGitClient(address, access);
  const found = ref === undefined ? await findDefault(client) : await findRef(ref, client);
  if (found === undefined) {
    const isShort = /^[0-9a-f]{7,39}$/.test(ref ?? "");
    throw refuse(
      `the repository does not contain ref ${ref}`,
      isShort
        ? "Give the full hash of a commit."
        : "Give the name of a branch or tag, or the full hash of a commit.",
    );
  }
  require(found.commit, ...(found.tag === undefined ? [] : [found.tag]));
  return { ref: found.ref, commit: found.commit };
}

interface Found {
  ref: string | undefined;
  commit: string;
  /** The hash of an annotated tag itself. */
  tag?: string | undefined;
}

async function findDefault(client: GitClient): Promise<Found | undefined> {
  const lines = linesOf(await client.run(["ls-remote", "--symref", "--", client.remote, "HEAD"]));
  const commit = lines.get("HEAD")?.find(isCommitHash);
  const branch = lines
    .get("HEAD")
    ?.find((word) => word.startsWith("ref: "))
    ?.slice("ref: ".length);
  // git also lists nothing for a web page of one line, and for a HEAD that names a missing branch.
  if (commit === undefined)
    throw client.refuse(
      "could not find the default branch: the repository is empty, or its HEAD names a missing branch",
      "Check the address, or give the name of a branch or tag.",
    );
  return { ref: branch, commit };
}

/** Finds a ref by its full name without `refs/`, then as a branch, then as a tag. */
async function findRef(ref: string, client: GitClient): Promise<Found | undefined> {
  const lines = linesOf(await client.run(["ls-remote", "--", client.remote, ref, `${ref}^{}`]));
  const after = (prefix: string) => `${prefix}${ref.startsWith(prefix) ? ref.slice(prefix.length) : ref}`;
  for (const name of [after("refs/"), after("refs/heads/"), after("refs/tags/")]) {
    const hash = lines.get(name)?.find(isCommitHash);
    if (hash === undefined) continue;
    const peeled = lines.get(`${name}^{}`)?.find(isCommitHash);
    return peeled === undefined ? { ref: name, commit: hash } : { ref: name, commit: peeled, tag: hash };
  }
  return undefined;
}

/** Returns the values that the server lists for each name. */
function linesOf(text: string): Map<string, string[]> {
  const lines = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [value = "", name] = line.split("\t");
    if (name !== undefined) lines.getOrInsert(name, []).push(value);
  }
  return lines;
}
