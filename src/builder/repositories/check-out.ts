import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type FileSystem,
  keepsModes,
  localFileSystem,
  localPath,
} from "../../context/file-system/file-system.ts";
import { type RecordedModes, withModes } from "../../context/file-system/recorded-modes.ts";
import type { Message } from "../../messages/wording.ts";
import type { GitEnd } from "../addresses/git-program.ts";
import type { ResolvedRepository } from "../addresses/repository-address.ts";
import { type GitClient, tooLarge } from "./git-client.ts";

interface Checkout {
  /** The directory to copy, with `/` on every system. */
  directory: string;
  /** Reads it, with the modes of the commit. */
  files: FileSystem;
  /** The modes, on a system that keeps none. */
  modes: RecordedModes | undefined;
  /** The time of the commit, in seconds. */
  commitTime: number;
}

interface CheckoutOptions {
  client: GitClient;
  place: string;
  maxBytes: number;
  /** The advice if the repository no longer has the commit. */
  adviceIfGone: Message;
}

/** Fetches one commit, without its history if the server supports that, and checks it out below `place`. */
export async function checkOut(
  { address, ref, commit }: Omit<ResolvedRepository, "exclude" | "shown">,
  { client, place, maxBytes, adviceIfGone }: CheckoutOptions,
): Promise<Checkout> {
  const tree = join(place, "tree");
  const git = (...args: string[]) => client.run(["-C", tree, ...args]);
  const format = commit.length === 64 ? ["--object-format=sha256"] : [];
  await client.run(["init", "--quiet", "--template=", ...format, "--", tree]);
  await git("remote", "add", "--", "origin", client.remote);
  let fetched = ref === undefined ? undefined : await fetchRef(ref, tree, client);
  if (fetched?.commit !== commit) {
    await fetchCommit(commit, tree, client, adviceIfGone);
    fetched = await readCommit(commit, tree, client);
  }

  const size = sizeOf(await git("ls-tree", "-r", "-l", "--full-tree", commit));
  if (size > maxBytes) {
    const { reason, hint } = tooLarge(maxBytes);
    throw client.refuse(reason, hint);
  }
  await git("checkout", "--quiet", "--detach", commit);
  if (address.hasSubmodules && existsSync(join(tree, ".gitmodules"))) await updateSubmodules(tree, client);
  if (keepsGitDirectory({ address })) await makeReproducible(join(tree, ".git"), git);
  const modes = keepsModes
    ? undefined
    : readModes(await git("ls-files", "--stage", "--recurse-submodules", "-z"));
  return {
    directory: localPath(findDirectory(tree, address.subdirectory, client)),
    files: modes === undefined ? localFileSystem : withModes(localFileSystem, localPath(tree), modes),
    modes,
    commitTime: fetched.time,
  };
}

/** Reads `MODE OBJECT STAGE<tab>PATH`. A submodule itself is a directory. */
function readModes(list: string): RecordedModes {
  const modes = new Map<string, number | "link">();
  for (const [, mode = "", path = ""] of list.matchAll(/(\d+) [^\t]+\t([^\0]+)\0/g))
    if (mode !== "160000") modes.set(path, mode === "120000" ? "link" : Number.parseInt(mode, 8) & 0o777);
  return modes;
}

/** Returns true if the copy has a `.git`, which a subdirectory never has. */
export function keepsGitDirectory({ address }: Pick<ResolvedRepository, "address">): boolean {
  return address.keepsGitDirectory === true && address.subdirectory === "";
}

interface Commit {
  commit: string;
  /** In seconds. */
  time: number;
}

/** Fetches a ref; returns the commit that it points to now. */
async function fetchRef(ref: string, tree: string, client: GitClient): Promise<Commit> {
  const end = await fetchShallow(tree, client, `+${ref}:${ref}`);
  if (end.status !== 0) throw client.exitError(end);
  return readCommit("FETCH_HEAD", tree, client);
}

async function readCommit(name: string, tree: string, client: GitClient): Promise<Commit> {
  const line = await client.run([
    "-C",
    tree,
    "log",
    "-1",
    "--no-show-signature",
    "--format=%H %ct",
    name,
    "--",
  ]);
  const [commit = "", time] = line.trim().split(" ");
  return { commit, time: Number(time) };
}

/** Fetches a commit. Fetches all branches and tags if the server gives no commit by its hash. */
async function fetchCommit(
  commit: string,
  tree: string,
  client: GitClient,
  adviceIfGone: Message,
): Promise<void> {
  const direct = await fetchShallow(tree, client, commit);
  if (direct.status === 0) return;
  if (
    !/not our ref|unadvertised object|no such remote ref|couldn't find remote ref|dumb http/i.test(
      direct.stderr,
    )
  )
    throw client.exitError(direct);
  const refs = ["heads", "tags"].map((kind) => `+refs/${kind}/*:${otherRefs}/${kind}/*`);
  await client.run([
    "-C",
    tree,
    "fetch",
    "--quiet",
    "--no-tags",
    "--update-shallow",
    "--",
    "origin",
    ...refs,
  ]);
  const { status } = await client.attempt(["-C", tree, "cat-file", "-e", `${commit}^{commit}`]);
  if (status !== 0) throw client.refuse(`the repository has no commit ${commit}`, adviceIfGone);
}

const otherRefs = "refs/bough";

async function fetchShallow(tree: string, client: GitClient, refspec: string): Promise<GitEnd> {
  const fetch = ["-C", tree, "fetch", "--quiet", "--no-tags", "--refmap=", "--update-head-ok"];
  const shallow = await client.attempt([...fetch, "--depth=1", "--", "origin", refspec]);
  if (shallow.status === 0 || !lacksShallow(shallow)) return shallow;
  return client.attempt([...fetch, "--", "origin", refspec]);
}

/** Returns true if the server does not support `--depth`, as one that serves plain files does not. */
function lacksShallow({ stderr }: GitEnd): boolean {
  return /shallow|--depth/.test(stderr);
}

async function updateSubmodules(tree: string, client: GitClient): Promise<void> {
  const update = ["-C", tree, "submodule", "--quiet", "update", "--init", "--recursive"];
  const shallow = await client.attempt([...update, "--depth=1"], { takesAnyScheme: true });
  if (shallow.status === 0) return;
  if (!lacksShallow(shallow)) throw client.exitError(shallow);
  await client.run(update, { takesAnyScheme: true });
}

/** Removes what differs between machines from a kept `.git`: inodes and times of files, and traces of the fetch. */
async function makeReproducible(
  directory: string,
  git: (...args: string[]) => Promise<string>,
): Promise<void> {
  await git("read-tree", "HEAD");
  for (const name of ["FETCH_HEAD", "ORIG_HEAD", otherRefs])
    rmSync(join(directory, name), { recursive: true, force: true });
}

/** Adds up the sizes, the fourth column of `git ls-tree -l`. */
function sizeOf(list: string): number {
  let bytes = 0;
  for (const line of list.split("\n")) bytes += Number(/^\d+ blob [0-9a-f]+ +(\d+)/.exec(line)?.[1] ?? 0);
  return bytes;
}

/** Finds the subdirectory. Follows no link on the way: it could lead out of the repository. */
function findDirectory(tree: string, subdirectory: string, { refuse }: Pick<GitClient, "refuse">): string {
  let at = tree;
  for (const name of subdirectory.split("/").filter((part) => part !== "")) {
    const isDirectory = readdirSync(at, { withFileTypes: true }).some(
      (entry) => entry.name === name && entry.isDirectory(),
    );
    at = join(at, name);
    if (isDirectory && name !== ".git") continue;
    throw refuse(`the repository has no directory ${subdirectory}`, "Links in its path are not followed.");
  }
  return at;
}
